// An ARK execution plan: task infos, processor, resource and task groups.
#ifndef IRC_PLAN
#define IRC_PLAN

include "Base.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::irc::plan";
  let summary = "An ARK execution plan: task infos, processor, resource and task groups";
  let description = [{
    `plan.program` holds the `plan.task`s, each after the buffers and tensors it is the first to
    use, then the `plan.processor_group`s in order. Ranges are half-open `[begin, end)`; a third
    integer is a step, which the executor ignores. The ops of a task are `ark` ops with a
    `config`; they run back to back for one task index, so an op may read only what the same task
    index of an earlier op of the task wrote. If the keys of a config are not in the usual
    order, `plan.config_keys` on the op lists them. Tensors are names of memory here: the result of an op
    is read through an `ark.tensor` with the id of its result.
  }];
}

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, !listconcat(traits, [RustVerified])>;

def Plan_ProgramOp : Plan_Op<"program", [IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one rank's plan";
  let arguments = (ins I64Attr:$rank, I64Attr:$world_size, StrAttr:$architecture,
                       I64Attr:$processors, I64Attr:$warps_per_processor);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Plan_TaskOp : Plan_Op<"task", [NoTerminator, SingleBlock]> {
  let summary = "a TaskInfo: ops run back to back for one task index";
  let arguments = (ins I64Attr:$id, I64Attr:$warps, I64Attr:$sram_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Plan_ProcessorGroupOp : Plan_Op<"processor_group", [NoTerminator, SingleBlock]> {
  let summary = "a step on a range of processors; groups that share processors synchronise";
  let arguments = (ins DenseI64ArrayAttr:$processor_range);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Plan_ResourceGroupOp : Plan_Op<"resource_group", [NoTerminator, SingleBlock]> {
  let summary = "a share of a processor group's processors, warps and SRAM";
  let arguments = (ins DenseI64ArrayAttr:$processor_range, DenseI64ArrayAttr:$warp_range,
                       DenseI64ArrayAttr:$sram_range);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Plan_TaskGroupOp : Plan_Op<"task_group"> {
  let summary = "runs a range of a task's indices";
  let arguments = (ins I64Attr:$task, DenseI64ArrayAttr:$task_range, I64Attr:$granularity);
  let assemblyFormat = "attr-dict";
}

#endif
