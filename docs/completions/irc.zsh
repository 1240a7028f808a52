#compdef irc

autoload -U is-at-least

_irc() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_irc_commands" \
"*::: :->irc" \
&& ret=0
    case $state in
    (irc)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:irc-command-$line[1]:"
        case $line[1] in
            (compile)
_arguments "${_arguments_options[@]}" : \
'-o+[File to write; its suffix says what\: .so .tar .o .c .ll .s .mlir .json; - is stdout]:OUT:_files' \
'--output=[File to write; its suffix says what\: .so .tar .o .c .ll .s .mlir .json; - is stdout]:OUT:_files' \
'--backend=[Who generates code for .so and .o]:NAME:((llvm\:"LLVM\: the fastest code"
cranelift\:"Cranelift\: compiled quickly, runs slower"))' \
'--emit=[What to write, whatever the suffix says]:KIND:((so\:"A shared library that \`irc run\` and the C ABI load"
o\:"A relocatable object"
ll\:"LLVM IR, optimised"
s\:"Assembly"
c\:"C source that gcc or clang compiles, for any processor unless one is named"
mlir\:"MLIR after a stage of the pipeline"
json\:"An ARK execution plan"
tar\:"A Model Library Format archive"
asm\:"An NPU program (not built yet)"
ptx\:"NVIDIA PTX (not built yet)"))' \
'--stage=[Stage after which .mlir is written; irc-opt --list-stages lists them \[default\: import\]]:NAME:_default' \
'--inputs=[Inputs that the structure of an ONNX model depends on, or of test vectors]:X.npz:_files' \
'--arch=[Device a .json plan is for\: ANY, CUDA, CUDA_80, ROCM_942, … \[default\: CUDA_80\]]:NAME:_default' \
'--processors=[Processors a .json plan may use \[default\: those of the device\]]:N:_default' \
'--planner=[Planner of a .json plan\: irc optimises, ark gives what ARK'\''s own planner gives]:NAME:((irc\:"The optimising one"
ark\:"ARK'\''s own, reproduced\: one op after another"))' \
'--config-rules=[Configs and ranges pinned for ops of a .json plan\: JSON, see docs/config-rules.md]:FILE:_files' \
'--mlf-version=[Version of the Model Library Format of a .tar\: 5 or 7 \[default\: 5\]]:N:(5 7)' \
'--codegen=[Code in a .tar\: an object for one processor, or C source for any \[default\: o\]]:KIND:((o\:"A relocatable object, and a shared library"
c\:"C source, which needs a C compiler and nothing else"))' \
'--model-name=[Name of the model in a .tar \[default\: default, which all clients know\]]:NAME:_default' \
'--format=[Form of the file, where its content does not tell\: onnx, common-ir-text, …]:FORM:_default' \
'*--library-path=[Further folder in which imported libraries may lie; beside the model they always may]:DIR:_files' \
'--allow-fetch=[Fetch imported libraries from servers, once, into this folder]:CACHE:_files' \
'*--shape=[Shape of an input whose sizes the model leaves open\: data=1x3x224x224; once for each]:NAME=SHAPE:_default' \
'--functions=[What becomes of calls of the model'\''s functions]:HOW:((inline\:"The body in place of each call\: fuses with what is around it"
outline\:"One function for all calls, where the body does not depend on the values of arguments"))' \
'--target-cpu=[Processor to generate code for, such as x86-64-v3 \[default\: native; for .c, any\]]:CPU:_default' \
'--results=[Which written buffers come back \[default\: outputs for irc compile, all for irc run\]]:WHICH:((all\:"Every buffer written"
outputs\:"Buffers whose last value nothing else reads"))' \
'--explain-fusion=[Print how the ops were fused and why not further, to standard error]::FORMAT:((text\:"Lines for people"
json\:"One JSON object"))' \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'(--results)--keep-intermediates[Short for --results all\: intermediate buffers come back too]' \
'--check-reproducible[Compile a .tar twice, each time from nothing, and demand equal bytes]' \
'--with-test-vectors[Put inputs and what comes of them into a .tar\: irc run --self-test compares]' \
'--implicit-std[Operators that nothing declares are those of the standard library]' \
'--compat[Rules that real files of Common IR'\''s time break are warnings]' \
'--ignore-control-inputs[Let nodes run before those that their control inputs name]' \
'--ark-accumulate[Accumulate as ARK'\''s kernels on CUDA_80 do\: f16 in f16, f32 products through TF32]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':model -- ARK model, ONNX model or Common IR graph; - is standard input:_default' \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
'--inputs=[Input buffers]:X.npz:_files' \
'--outputs=[File for the output buffers; without it a summary is printed]:Y.npz:_files' \
'--expected=[Buffers that must come out, within the tolerance of their type]:E.npz:_files' \
'--tolerance=[Tolerance relative to element and tensor, instead of that of each type]:X:_default' \
'--seed=[Fill inputs not given with random values; equal seeds give equal values everywhere]:N:_default' \
'--data-set=[ONNX test data of a model\: input_N.pb, and output_N.pb that must come out]:DIR:_files' \
'--threads=[Threads to run a plan on; models and libraries run on one today]:N:_default' \
'--trace=[File for a timeline of the run of plans, for ui.perfetto.dev]:T.json:_files' \
'--transport=[How ranks reach each other; with mpi, mpirun starts a process for each]:HOW:((inprocess\:"All of them run in one process"
mpi\:"Each runs in a process of its own, and writes files of its own\: y.rank0.npz for y.npz"))' \
'--backend=[What runs the model]:NAME:((llvm\:"Code from LLVM"
reference\:"The reference evaluator\: slow, and the meaning of everything else"
cranelift\:"Code from Cranelift\: compiled quickly, runs slower"
cuda\:"A GPU (not built yet)"))' \
'--format=[Form of the file, where its content does not tell\: onnx, common-ir-text, …]:FORM:_default' \
'*--library-path=[Further folder in which imported libraries may lie; beside the model they always may]:DIR:_files' \
'--allow-fetch=[Fetch imported libraries from servers, once, into this folder]:CACHE:_files' \
'*--shape=[Shape of an input whose sizes the model leaves open\: data=1x3x224x224; once for each]:NAME=SHAPE:_default' \
'--functions=[What becomes of calls of the model'\''s functions]:HOW:((inline\:"The body in place of each call\: fuses with what is around it"
outline\:"One function for all calls, where the body does not depend on the values of arguments"))' \
'--target-cpu=[Processor to generate code for, such as x86-64-v3 \[default\: native; for .c, any\]]:CPU:_default' \
'--results=[Which written buffers come back \[default\: outputs for irc compile, all for irc run\]]:WHICH:((all\:"Every buffer written"
outputs\:"Buffers whose last value nothing else reads"))' \
'--explain-fusion=[Print how the ops were fused and why not further, to standard error]::FORMAT:((text\:"Lines for people"
json\:"One JSON object"))' \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'(--inputs --outputs --expected --seed)--self-test[Run an archive on the inputs that it holds, and compare with the outputs that it holds]' \
'--race-check[Stop the run of plans at the first race; one that irc check finds must show in the run]' \
'--implicit-std[Operators that nothing declares are those of the standard library]' \
'--compat[Rules that real files of Common IR'\''s time break are warnings]' \
'--ignore-control-inputs[Let nodes run before those that their control inputs name]' \
'--ark-accumulate[Accumulate as ARK'\''s kernels on CUDA_80 do\: f16 in f16, f32 products through TF32]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
'*::files -- Model (ARK, ONNX, Common IR), library, or the plans of all ranks; - is standard input:_default' \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
'*--model=[Check that the plans compute this model; once for each rank]:MODEL:_default' \
'--against=[Check that NPU programs are this one\: a listing, a trace or .npu]:PROGRAM:_default' \
'--format=[Form of the file, where its content does not tell\: onnx, common-ir-text, …]:FORM:_default' \
'*--library-path=[Further folder in which imported libraries may lie; beside the model they always may]:DIR:_files' \
'--allow-fetch=[Fetch imported libraries from servers, once, into this folder]:CACHE:_files' \
'*--shape=[Shape of an input whose sizes the model leaves open\: data=1x3x224x224; once for each]:NAME=SHAPE:_default' \
'--functions=[What becomes of calls of the model'\''s functions]:HOW:((inline\:"The body in place of each call\: fuses with what is around it"
outline\:"One function for all calls, where the body does not depend on the values of arguments"))' \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'--strict[Keys that the format does not know are errors]' \
'--json[Write all findings as one JSON array to standard output]' \
'--cost[Estimate what plans cost; with --json, an object of findings and costs is written]' \
'--implicit-std[Operators that nothing declares are those of the standard library]' \
'--compat[Rules that real files of Common IR'\''s time break are warnings]' \
'--ignore-control-inputs[Let nodes run before those that their control inputs name]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
'*::files -- Models, plans, graphs, schedules, layers, NPU programs, archives; - is standard input:_default' \
&& ret=0
;;
(bench)
_arguments "${_arguments_options[@]}" : \
'--inputs=[Inputs of an ONNX model; others are random, and of size 1 where it leaves that open]:X.npz:_files' \
'--threads=[Threads to run a plan on; models and libraries run on one today]:N:_default' \
'--seed=[Seed of the random inputs]:N:_default' \
'--time=[Seconds to measure, beside a tenth of that to warm up]:S:_default' \
'--iterations=[Runs to measure, instead of a time]:N:_default' \
'--peak-gflops=[Peak arithmetic in GFLOP/s, instead of measuring it]:X:_default' \
'--peak-bandwidth=[Peak memory traffic in GB/s, read and written, instead of measuring it]:X:_default' \
'--backend=[Who generates the code]:NAME:((llvm\:"LLVM\: the fastest code"
cranelift\:"Cranelift\: compiled quickly, runs slower"))' \
'--target-cpu=[Processor to generate code for\: native, or an LLVM name such as x86-64-v3]:CPU:_default' \
'--format=[Form of the file, where its content does not tell\: onnx, common-ir-text, …]:FORM:_default' \
'*--library-path=[Further folder in which imported libraries may lie; beside the model they always may]:DIR:_files' \
'--allow-fetch=[Fetch imported libraries from servers, once, into this folder]:CACHE:_files' \
'*--shape=[Shape of an input whose sizes the model leaves open\: data=1x3x224x224; once for each]:NAME=SHAPE:_default' \
'--functions=[What becomes of calls of the model'\''s functions]:HOW:((inline\:"The body in place of each call\: fuses with what is around it"
outline\:"One function for all calls, where the body does not depend on the values of arguments"))' \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'--json[Write one JSON object instead of lines]' \
'--ark-accumulate[Accumulate as ARK'\''s kernels on CUDA_80 do\: f16 in f16, f32 products through TF32]' \
'--implicit-std[Operators that nothing declares are those of the standard library]' \
'--compat[Rules that real files of Common IR'\''s time break are warnings]' \
'--ignore-control-inputs[Let nodes run before those that their control inputs name]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':file -- Model, graph, ARK plan, or library of irc compile; - is standard input:_default' \
&& ret=0
;;
(simulate)
_arguments "${_arguments_options[@]}" : \
'--frontend=[Frontend IR of the same network\: programs of schedules of one core are made with it]:F:_files' \
'--program=[Program to run, instead of making one\: a listing, a trace or .npu of the same schedule]:P:_files' \
'--trace=[File for a Perfetto trace]:OUT.json:_files' \
'--html=[File for a page that shows what lies where in the buffers, over time]:OUT.html:_files' \
'--link-rate=[Bytes that a link between cores carries in a cycle \[default\: transfers do not share links\]]:BYTES:_default' \
'--dram-rate=[Bytes that DRAM gives all cores together in a cycle; without it each has its own]:BYTES:_default' \
'--outputs=[Also run the program on int8 tensors\: file for the results of the network]:Y.npz:_files' \
'--inputs=[Inputs, by name]:X.npz:_files' \
'--weights=[Weights, scales and biases\: LAYER.weight, LAYER.scale, LAYER.bias]:W.npz:_files' \
'--seed=[Draw the inputs and weights that are not given]:N:_default' \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'--json[Write one JSON object instead of lines]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':schedule -- Gemini schedule; .gz files are unpacked:_files' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_irc__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:irc-help-command-$line[1]:"
        case $line[1] in
            (compile)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(bench)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(simulate)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
}

(( $+functions[_irc_commands] )) ||
_irc_commands() {
    local commands; commands=(
'compile:Compile a model to a library, an archive, an object, LLVM IR, MLIR or a plan' \
'run:Run a model, a compiled library, an archive, or plans' \
'check:Check models and plans\: every finding of every file' \
'bench:Measure a model or a plan\: latency, GFLOP/s, bytes, share of the roofline' \
'simulate:Simulate an NPU schedule\: cycles, traces, what it computes' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'irc commands' commands "$@"
}
(( $+functions[_irc__subcmd__bench_commands] )) ||
_irc__subcmd__bench_commands() {
    local commands; commands=()
    _describe -t commands 'irc bench commands' commands "$@"
}
(( $+functions[_irc__subcmd__check_commands] )) ||
_irc__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'irc check commands' commands "$@"
}
(( $+functions[_irc__subcmd__compile_commands] )) ||
_irc__subcmd__compile_commands() {
    local commands; commands=()
    _describe -t commands 'irc compile commands' commands "$@"
}
(( $+functions[_irc__subcmd__help_commands] )) ||
_irc__subcmd__help_commands() {
    local commands; commands=(
'compile:Compile a model to a library, an archive, an object, LLVM IR, MLIR or a plan' \
'run:Run a model, a compiled library, an archive, or plans' \
'check:Check models and plans\: every finding of every file' \
'bench:Measure a model or a plan\: latency, GFLOP/s, bytes, share of the roofline' \
'simulate:Simulate an NPU schedule\: cycles, traces, what it computes' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'irc help commands' commands "$@"
}
(( $+functions[_irc__subcmd__help__subcmd__bench_commands] )) ||
_irc__subcmd__help__subcmd__bench_commands() {
    local commands; commands=()
    _describe -t commands 'irc help bench commands' commands "$@"
}
(( $+functions[_irc__subcmd__help__subcmd__check_commands] )) ||
_irc__subcmd__help__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'irc help check commands' commands "$@"
}
(( $+functions[_irc__subcmd__help__subcmd__compile_commands] )) ||
_irc__subcmd__help__subcmd__compile_commands() {
    local commands; commands=()
    _describe -t commands 'irc help compile commands' commands "$@"
}
(( $+functions[_irc__subcmd__help__subcmd__help_commands] )) ||
_irc__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'irc help help commands' commands "$@"
}
(( $+functions[_irc__subcmd__help__subcmd__run_commands] )) ||
_irc__subcmd__help__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'irc help run commands' commands "$@"
}
(( $+functions[_irc__subcmd__help__subcmd__simulate_commands] )) ||
_irc__subcmd__help__subcmd__simulate_commands() {
    local commands; commands=()
    _describe -t commands 'irc help simulate commands' commands "$@"
}
(( $+functions[_irc__subcmd__run_commands] )) ||
_irc__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'irc run commands' commands "$@"
}
(( $+functions[_irc__subcmd__simulate_commands] )) ||
_irc__subcmd__simulate_commands() {
    local commands; commands=()
    _describe -t commands 'irc simulate commands' commands "$@"
}

if [ "$funcstack[1]" = "_irc" ]; then
    _irc "$@"
else
    compdef _irc irc
fi
