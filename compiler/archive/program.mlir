// The host of a program with open sizes, for clients of graphs: a `struct irc_host`, then the first block of memory that was
// not released, then the addresses of the results. Before a block are its address, and the blocks after and before it.
llvm.func internal @irc_graph_allocate(%host: !llvm.ptr, %bytes: i64) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %extra = llvm.mlir.constant(128 : i64) : i64
  %more = llvm.add %bytes, %extra : i64
  %memory = llvm.call @malloc(%more) : (i64) -> !llvm.ptr
  %none = llvm.icmp "eq" %memory, %null : !llvm.ptr
  llvm.cond_br %none, ^end(%null : !llvm.ptr), ^given
^given:
  %address = llvm.ptrtoint %memory : !llvm.ptr to i64
  %last = llvm.mlir.constant(-64 : i64) : i64
  %above = llvm.add %address, %extra : i64
  %whole = llvm.and %above, %last : i64
  %aligned = llvm.inttoptr %whole : i64 to !llvm.ptr
  %own = llvm.getelementptr %aligned[-4] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %memory, %own : !llvm.ptr, !llvm.ptr
  %first_at = llvm.getelementptr %host[6] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %first = llvm.load %first_at : !llvm.ptr -> !llvm.ptr
  %next_at = llvm.getelementptr %own[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %first, %next_at : !llvm.ptr, !llvm.ptr
  %previous_at = llvm.getelementptr %own[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %null, %previous_at : !llvm.ptr, !llvm.ptr
  llvm.store %own, %first_at : !llvm.ptr, !llvm.ptr
  %only = llvm.icmp "eq" %first, %null : !llvm.ptr
  llvm.cond_br %only, ^end(%aligned : !llvm.ptr), ^linked
^linked:
  %back = llvm.getelementptr %first[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %own, %back : !llvm.ptr, !llvm.ptr
  llvm.br ^end(%aligned : !llvm.ptr)
^end(%result: !llvm.ptr):
  llvm.return %result : !llvm.ptr
}

llvm.func internal @irc_graph_release(%host: !llvm.ptr, %block: !llvm.ptr) {
  %null = llvm.mlir.zero : !llvm.ptr
  %own = llvm.getelementptr %block[-4] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %memory = llvm.load %own : !llvm.ptr -> !llvm.ptr
  %next_at = llvm.getelementptr %own[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %next = llvm.load %next_at : !llvm.ptr -> !llvm.ptr
  %previous_at = llvm.getelementptr %own[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %previous = llvm.load %previous_at : !llvm.ptr -> !llvm.ptr
  %first_at = llvm.getelementptr %host[6] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %after_at = llvm.getelementptr %previous[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %is_first = llvm.icmp "eq" %previous, %null : !llvm.ptr
  %link = llvm.select %is_first, %first_at, %after_at : i1, !llvm.ptr
  llvm.store %next, %link : !llvm.ptr, !llvm.ptr
  %is_last = llvm.icmp "eq" %next, %null : !llvm.ptr
  llvm.cond_br %is_last, ^free, ^linked
^linked:
  %back = llvm.getelementptr %next[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %previous, %back : !llvm.ptr, !llvm.ptr
  llvm.br ^free
^free:
  llvm.call @free(%memory) : (!llvm.ptr) -> ()
  llvm.return
}

// Releases the memory that a program that ended early did not.
llvm.func internal @irc_graph_release_all(%host: !llvm.ptr) {
  %null = llvm.mlir.zero : !llvm.ptr
  %first_at = llvm.getelementptr %host[6] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.br ^next
^next:
  %own = llvm.load %first_at : !llvm.ptr -> !llvm.ptr
  %none = llvm.icmp "eq" %own, %null : !llvm.ptr
  llvm.cond_br %none, ^end, ^some
^some:
  %block = llvm.getelementptr %own[4] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.call @irc_graph_release(%host, %block) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.br ^next
^end:
  llvm.return
}

llvm.func internal @irc_graph_output(%host: !llvm.ptr, %number: i64, %extents: !llvm.ptr) -> !llvm.ptr {
  %results = llvm.getelementptr %host[7] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %place = llvm.getelementptr %results[%number] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %result = llvm.load %place : !llvm.ptr -> !llvm.ptr
  llvm.return %result : !llvm.ptr
}

llvm.func internal @irc_graph_fail(%host: !llvm.ptr, %check: i64, %left: i64, %right: i64) {
  llvm.return
}

llvm.func @irc_run_sized(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
