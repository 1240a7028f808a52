// Shared code of the functions of an archive: reading arguments, allocating workspace, reporting errors.
llvm.mlir.global weak @__TVMBackendAllocWorkspace() : !llvm.ptr {
  %0 = llvm.mlir.zero : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}
llvm.mlir.global weak @__TVMBackendFreeWorkspace() : !llvm.ptr {
  %0 = llvm.mlir.zero : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}
llvm.mlir.global weak @__TVMBackendParallelLaunch() : !llvm.ptr {
  %0 = llvm.mlir.zero : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}
llvm.mlir.global weak @__TVMAPISetLastError() : !llvm.ptr {
  %0 = llvm.mlir.zero : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}
llvm.mlir.global weak @__TVMFFIErrorSetRaisedFromCStr() : !llvm.ptr {
  %0 = llvm.mlir.zero : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

llvm.mlir.global internal constant @irc_kind("ValueError\00")

// Reports an error to the runtime, if it has a function for that, and returns the status of failure.
llvm.func internal @irc_fail(%number: i32, %digit: i32, %ffi: i1) -> i32 {
  %failed = llvm.mlir.constant(-1 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %buffer = llvm.alloca %one x !llvm.array<48 x i8> : (i32) -> !llvm.ptr
  %all = llvm.mlir.addressof @irc_messages : !llvm.ptr
  %message = llvm.getelementptr %all[%number] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<48 x i8>
  %size = llvm.mlir.constant(48 : i64) : i64
  "llvm.intr.memcpy"(%buffer, %message, %size) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %place = llvm.getelementptr %buffer[9] : (!llvm.ptr) -> !llvm.ptr, i8
  %ascii = llvm.mlir.constant(48 : i32) : i32
  %wide = llvm.add %digit, %ascii : i32
  %number_text = llvm.trunc %wide : i32 to i8
  %zero = llvm.mlir.constant(0 : i32) : i32
  %no_digit = llvm.icmp "slt" %digit, %zero : i32
  %before = llvm.load %place : !llvm.ptr -> i8
  %after = llvm.select %no_digit, %before, %number_text : i1, i8
  llvm.store %after, %place : i8, !llvm.ptr
  llvm.cond_br %ffi, ^ffi, ^packed
^ffi:
  %slot = llvm.mlir.addressof @__TVMFFIErrorSetRaisedFromCStr : !llvm.ptr
  %raise = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  %no_raise = llvm.icmp "eq" %raise, %null : !llvm.ptr
  llvm.cond_br %no_raise, ^end, ^raise
^raise:
  %kind = llvm.mlir.addressof @irc_kind : !llvm.ptr
  llvm.call %raise(%kind, %buffer) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()
  llvm.br ^end
^packed:
  %other = llvm.mlir.addressof @__TVMAPISetLastError : !llvm.ptr
  %set = llvm.load %other : !llvm.ptr -> !llvm.ptr
  %no_set = llvm.icmp "eq" %set, %null : !llvm.ptr
  llvm.cond_br %no_set, ^end, ^set
^set:
  llvm.call %set(%buffer) : !llvm.ptr, (!llvm.ptr) -> ()
  llvm.br ^end
^end:
  llvm.return %failed : i32
}

llvm.func internal @irc_allocate(%bytes: i64) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %slot = llvm.mlir.addressof @__TVMBackendAllocWorkspace : !llvm.ptr
  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  %none = llvm.icmp "eq" %function, %null : !llvm.ptr
  llvm.cond_br %none, ^own, ^runtime
^own:
  %block = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
  llvm.return %block : !llvm.ptr
^runtime:
  %device = llvm.mlir.constant(1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %float = llvm.mlir.constant(2 : i32) : i32
  %bits = llvm.mlir.constant(32 : i32) : i32
  %workspace = llvm.call %function(%device, %zero, %bytes, %float, %bits) : !llvm.ptr, (i32, i32, i64, i32, i32) -> !llvm.ptr
  llvm.return %workspace : !llvm.ptr
}

llvm.func internal @irc_release(%block: !llvm.ptr) {
  %null = llvm.mlir.zero : !llvm.ptr
  %slot = llvm.mlir.addressof @__TVMBackendFreeWorkspace : !llvm.ptr
  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  %none = llvm.icmp "eq" %function, %null : !llvm.ptr
  llvm.cond_br %none, ^own, ^runtime
^own:
  llvm.call @free(%block) : (!llvm.ptr) -> ()
  llvm.return
^runtime:
  %device = llvm.mlir.constant(1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %status = llvm.call %function(%device, %zero, %block) : !llvm.ptr, (i32, i32, !llvm.ptr) -> i32
  llvm.return
}

// Fills four words with the threads of the runtime, as a `struct irc_threads` followed by the bytes of memory to allocate
// for a part and the number of launches that failed. Null if the runtime has no threads.
llvm.func internal @irc_threads(%pool: !llvm.ptr, %bytes: i64) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %slot = llvm.mlir.addressof @__TVMBackendParallelLaunch : !llvm.ptr
  %launch = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  %is_alone = llvm.icmp "eq" %launch, %null : !llvm.ptr
  // As many as a launch turns out to have.
  %count = llvm.mlir.constant(2147483647 : i64) : i64
  llvm.store %count, %pool : i64, !llvm.ptr
  %run = llvm.mlir.addressof @irc_launch : !llvm.ptr
  %run_at = llvm.getelementptr %pool[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %run, %run_at : !llvm.ptr, !llvm.ptr
  %bytes_at = llvm.getelementptr %pool[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %bytes, %bytes_at : i64, !llvm.ptr
  %failed_at = llvm.getelementptr %pool[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  llvm.store %zero, %failed_at : i64, !llvm.ptr
  %threads = llvm.select %is_alone, %null, %pool : i1, !llvm.ptr
  llvm.return %threads : !llvm.ptr
}

// Returns 0 if no launch on threads failed, and otherwise -1.
llvm.func internal @irc_failed(%threads: !llvm.ptr) -> i32 {
  %null = llvm.mlir.zero : !llvm.ptr
  %fine = llvm.mlir.constant(0 : i32) : i32
  %is_alone = llvm.icmp "eq" %threads, %null : !llvm.ptr
  llvm.cond_br %is_alone, ^end(%fine : i32), ^given
^given:
  %failed_at = llvm.getelementptr %threads[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %failed = llvm.load %failed_at : !llvm.ptr -> i64
  %short = llvm.trunc %failed : i64 to i32
  %status = llvm.sub %fine, %short : i32
  llvm.br ^end(%status : i32)
^end(%result: i32):
  llvm.return %result : i32
}

// `run` of the threads of the runtime.
llvm.func internal @irc_launch(%threads: !llvm.ptr, %body: !llvm.ptr, %data: !llvm.ptr, %parts: i64) {
  %count = llvm.mlir.constant(3 : i64) : i64
  %frame = llvm.alloca %count x !llvm.ptr : (i64) -> !llvm.ptr
  llvm.store %body, %frame : !llvm.ptr, !llvm.ptr
  %data_at = llvm.getelementptr %frame[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %data, %data_at : !llvm.ptr, !llvm.ptr
  %threads_at = llvm.getelementptr %frame[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %threads, %threads_at : !llvm.ptr, !llvm.ptr
  %slot = llvm.mlir.addressof @__TVMBackendParallelLaunch : !llvm.ptr
  %launch = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  %task = llvm.mlir.addressof @irc_task : !llvm.ptr
  // The runtime chooses the number of tasks for 0; it rejects more than it has threads.
  %one = llvm.mlir.constant(1 : i64) : i64
  %is_one = llvm.icmp "eq" %parts, %one : i64
  %tasks = llvm.zext %is_one : i1 to i32
  %status = llvm.call %launch(%task, %frame, %tasks) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i32) -> i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %fine = llvm.icmp "eq" %status, %zero : i32
  llvm.cond_br %fine, ^end, ^fail
^fail:
  %failed_at = llvm.getelementptr %threads[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %one, %failed_at : i64, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}

// Runs one part of a kernel as a task of the runtime. Returns 0, or -1 if there is no memory.
llvm.func internal @irc_task(%task: i32, %environment: !llvm.ptr, %frame: !llvm.ptr) -> i32 {
  %body = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %data_at = llvm.getelementptr %frame[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %data = llvm.load %data_at : !llvm.ptr -> !llvm.ptr
  %threads_at = llvm.getelementptr %frame[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %threads = llvm.load %threads_at : !llvm.ptr -> !llvm.ptr
  %bytes_at = llvm.getelementptr %threads[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %bytes = llvm.load %bytes_at : !llvm.ptr -> i64
  %part = llvm.sext %task : i32 to i64
  %tasks_at = llvm.getelementptr %environment[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %tasks = llvm.load %tasks_at : !llvm.ptr -> i32
  %parts = llvm.sext %tasks : i32 to i64
  %null = llvm.mlir.zero : !llvm.ptr
  %fine = llvm.mlir.constant(0 : i32) : i32
  %none = llvm.mlir.constant(0 : i64) : i64
  %is_none = llvm.icmp "eq" %bytes, %none : i64
  llvm.cond_br %is_none, ^alone, ^allocate
^alone:
  llvm.call %body(%data, %part, %parts, %null) : !llvm.ptr, (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
  llvm.return %fine : i32
^allocate:
  %block = llvm.call @irc_allocate(%bytes) : (i64) -> !llvm.ptr
  %is_null = llvm.icmp "eq" %block, %null : !llvm.ptr
  llvm.cond_br %is_null, ^fail, ^run
^run:
  %memory = llvm.call @irc_aligned(%block) : (!llvm.ptr) -> !llvm.ptr
  llvm.call %body(%data, %part, %parts, %memory) : !llvm.ptr, (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
  llvm.call @irc_release(%block) : (!llvm.ptr) -> ()
  llvm.return %fine : i32
^fail:
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
}

// The first address from one on that is aligned to 64.
llvm.func internal @irc_aligned(%block: !llvm.ptr) -> !llvm.ptr {
  %address = llvm.ptrtoint %block : !llvm.ptr to i64
  %last = llvm.mlir.constant(63 : i64) : i64
  %mask = llvm.mlir.constant(-64 : i64) : i64
  %beyond = llvm.add %address, %last : i64
  %aligned = llvm.and %beyond, %mask : i64
  %memory = llvm.inttoptr %aligned : i64 to !llvm.ptr
  llvm.return %memory : !llvm.ptr
}

// Checks a DLTensor, and stores the address of its elements. Returns 0, or the number of a message.
llvm.func internal @irc_tensor(%tensor: !llvm.ptr, %index: i32, %table: !llvm.ptr, %buffers: !llvm.ptr) -> i32 {
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2 : i32) : i32
  %valid = llvm.mlir.constant(0 : i32) : i32
  %host = llvm.mlir.constant(1 : i32) : i32
  %no_tensor = llvm.mlir.constant(1 : i32) : i32
  %no_host = llvm.mlir.constant(2 : i32) : i32
  %no_type = llvm.mlir.constant(3 : i32) : i32
  %no_rows = llvm.mlir.constant(4 : i32) : i32
  %no_size = llvm.mlir.constant(5 : i32) : i32
  %is_null = llvm.icmp "eq" %tensor, %null : !llvm.ptr
  llvm.cond_br %is_null, ^end(%no_tensor : i32), ^device
^device:
  %device_at = llvm.getelementptr %tensor[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %device = llvm.load %device_at : !llvm.ptr -> i32
  %is_host = llvm.icmp "eq" %device, %host : i32
  llvm.cond_br %is_host, ^type, ^end(%no_host : i32)
^type:
  %row = llvm.mul %index, %two : i32
  %elements_at = llvm.getelementptr %table[%row] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  %elements = llvm.load %elements_at : !llvm.ptr -> i64
  %type_at = llvm.getelementptr %elements_at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %wide_type = llvm.load %type_at : !llvm.ptr -> i64
  %type = llvm.trunc %wide_type : i64 to i32
  %found_at = llvm.getelementptr %tensor[20] : (!llvm.ptr) -> !llvm.ptr, i8
  %found = llvm.load %found_at : !llvm.ptr -> i32
  %is_type = llvm.icmp "eq" %found, %type : i32
  // A boolean is an unsigned integer of one bit; newer clients use a separate type code, with eight bits.
  %bit = llvm.mlir.constant(0x10101 : i32) : i32
  %boolean = llvm.mlir.constant(0x10806 : i32) : i32
  %is_bit = llvm.icmp "eq" %type, %bit : i32
  %is_boolean = llvm.icmp "eq" %found, %boolean : i32
  %is_other = llvm.and %is_bit, %is_boolean : i1
  %is_either = llvm.or %is_type, %is_other : i1
  llvm.cond_br %is_either, ^rank, ^end(%no_type : i32)
^rank:
  %rank_at = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %rank = llvm.load %rank_at : !llvm.ptr -> i32
  %shape_at = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %shape_at : !llvm.ptr -> !llvm.ptr
  %strides_at = llvm.getelementptr %tensor[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %strides = llvm.load %strides_at : !llvm.ptr -> !llvm.ptr
  %is_dense = llvm.icmp "eq" %strides, %null : !llvm.ptr
  %last = llvm.sext %rank : i32 to i64
  llvm.br ^axis(%last, %one : i64, i64)
^axis(%left: i64, %count: i64):
  %is_end = llvm.icmp "sle" %left, %zero : i64
  llvm.cond_br %is_end, ^size, ^extent
^extent:
  %axis = llvm.sub %left, %one : i64
  %extent_at = llvm.getelementptr %shape[%axis] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %extent = llvm.load %extent_at : !llvm.ptr -> i64
  %is_single = llvm.icmp "eq" %extent, %one : i64
  %is_free = llvm.or %is_dense, %is_single : i1
  llvm.cond_br %is_free, ^next, ^stride
^stride:
  %stride_at = llvm.getelementptr %strides[%axis] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %stride = llvm.load %stride_at : !llvm.ptr -> i64
  %is_row = llvm.icmp "eq" %stride, %count : i64
  llvm.cond_br %is_row, ^next, ^end(%no_rows : i32)
^next:
  %product = llvm.mul %count, %extent : i64
  llvm.br ^axis(%axis, %product : i64, i64)
^size:
  %is_size = llvm.icmp "eq" %count, %elements : i64
  llvm.cond_br %is_size, ^take, ^end(%no_size : i32)
^take:
  %data = llvm.load %tensor : !llvm.ptr -> !llvm.ptr
  %offset_at = llvm.getelementptr %tensor[40] : (!llvm.ptr) -> !llvm.ptr, i8
  %offset = llvm.load %offset_at : !llvm.ptr -> i64
  %begin = llvm.getelementptr %data[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %buffer_at = llvm.getelementptr %buffers[%index] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.ptr
  llvm.store %begin, %buffer_at : !llvm.ptr, !llvm.ptr
  llvm.br ^end(%valid : i32)
^end(%message: i32):
  llvm.return %message : i32
}

// Reads the arguments of a packed function. Returns 0, or the status of failure.
llvm.func internal @irc_packed(%values: !llvm.ptr, %codes: !llvm.ptr, %count: i32, %expected: i32, %table: !llvm.ptr, %buffers: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %handle = llvm.mlir.constant(3 : i32) : i32
  %dltensor = llvm.mlir.constant(7 : i32) : i32
  %ndarray = llvm.mlir.constant(13 : i32) : i32
  %false = llvm.mlir.constant(false) : i1
  %as_many = llvm.icmp "eq" %count, %expected : i32
  llvm.cond_br %as_many, ^argument(%zero : i32), ^fail(%zero, %expected : i32, i32)
^argument(%index: i32):
  %is_end = llvm.icmp "sge" %index, %expected : i32
  llvm.cond_br %is_end, ^end, ^code
^code:
  %code_at = llvm.getelementptr %codes[%index] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %code = llvm.load %code_at : !llvm.ptr -> i32
  %is_handle = llvm.icmp "eq" %code, %handle : i32
  %is_dltensor = llvm.icmp "eq" %code, %dltensor : i32
  %is_ndarray = llvm.icmp "eq" %code, %ndarray : i32
  %is_either = llvm.or %is_handle, %is_dltensor : i1
  %is_tensor = llvm.or %is_either, %is_ndarray : i1
  llvm.cond_br %is_tensor, ^tensor, ^fail(%one, %index : i32, i32)
^tensor:
  %value_at = llvm.getelementptr %values[%index] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.ptr
  %value = llvm.load %value_at : !llvm.ptr -> !llvm.ptr
  %message = llvm.call @irc_tensor(%value, %index, %table, %buffers) : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
  %is_valid = llvm.icmp "eq" %message, %zero : i32
  %next = llvm.add %index, %one : i32
  llvm.cond_br %is_valid, ^argument(%next : i32), ^fail(%message, %index : i32, i32)
^fail(%number: i32, %digit: i32):
  %failed = llvm.call @irc_fail(%number, %digit, %false) : (i32, i32, i1) -> i32
  llvm.return %failed : i32
^end:
  llvm.return %zero : i32
}

// Reads the arguments of a function of tvm-ffi. Returns 0, or the status of failure.
llvm.func internal @irc_any(%values: !llvm.ptr, %count: i32, %expected: i32, %table: !llvm.ptr, %buffers: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %dltensor = llvm.mlir.constant(7 : i32) : i32
  %object = llvm.mlir.constant(70 : i32) : i32
  %true = llvm.mlir.constant(true) : i1
  %as_many = llvm.icmp "eq" %count, %expected : i32
  llvm.cond_br %as_many, ^argument(%zero : i32), ^fail(%zero, %expected : i32, i32)
^argument(%index: i32):
  %is_end = llvm.icmp "sge" %index, %expected : i32
  llvm.cond_br %is_end, ^end, ^code
^code:
  %any = llvm.getelementptr %values[%index] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<2 x i64>
  %code = llvm.load %any : !llvm.ptr -> i32
  %value_at = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %value = llvm.load %value_at : !llvm.ptr -> !llvm.ptr
  %inside = llvm.getelementptr %value[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %is_dltensor = llvm.icmp "eq" %code, %dltensor : i32
  %is_object = llvm.icmp "eq" %code, %object : i32
  %is_tensor = llvm.or %is_dltensor, %is_object : i1
  %tensor = llvm.select %is_object, %inside, %value : i1, !llvm.ptr
  llvm.cond_br %is_tensor, ^tensor, ^fail(%one, %index : i32, i32)
^tensor:
  %message = llvm.call @irc_tensor(%tensor, %index, %table, %buffers) : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
  %is_valid = llvm.icmp "eq" %message, %zero : i32
  %next = llvm.add %index, %one : i32
  llvm.cond_br %is_valid, ^argument(%next : i32), ^fail(%message, %index : i32, i32)
^fail(%number: i32, %digit: i32):
  %failed = llvm.call @irc_fail(%number, %digit, %true) : (i32, i32, i1) -> i32
  llvm.return %failed : i32
^end:
  llvm.return %zero : i32
}
