# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_irc_global_optspecs
    string join \n diagnostics= color= progress= h/help V/version
end

function __fish_irc_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_irc_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_irc_using_subcommand
    set -l cmd (__fish_irc_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c irc -n "__fish_irc_needs_command" -l diagnostics -d 'How findings are written: text for people, or one JSON object a line' -r -f -a "text\t'With the source lines they point at'
json\t'One JSON object a line'"
complete -c irc -n "__fish_irc_needs_command" -l color -d 'Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_needs_command" -l progress -d 'What tells of progress; auto: a bar on a terminal, when it takes long' -r -f -a "auto\t'A bar on a terminal, nothing otherwise'
none\t'Nothing'
plain\t'A line for each step'"
complete -c irc -n "__fish_irc_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_needs_command" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_needs_command" -f -a "compile" -d 'Compile a model to a library, an archive, an object, LLVM IR, MLIR or a plan'
complete -c irc -n "__fish_irc_needs_command" -f -a "run" -d 'Run a model, a compiled library, an archive, or plans'
complete -c irc -n "__fish_irc_needs_command" -f -a "check" -d 'Check models and plans: every finding of every file'
complete -c irc -n "__fish_irc_needs_command" -f -a "bench" -d 'Measure a model or a plan: latency, GFLOP/s, bytes, share of the roofline'
complete -c irc -n "__fish_irc_needs_command" -f -a "simulate" -d 'Simulate an NPU schedule: cycles, traces, what it computes'
complete -c irc -n "__fish_irc_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c irc -n "__fish_irc_using_subcommand compile" -s o -l output -d 'File to write; its suffix says what: .so .tar .o .c .ll .s .mlir .json; - is stdout' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l backend -d 'Who generates code for .so and .o' -r -f -a "llvm\t'LLVM: the fastest code'
cranelift\t'Cranelift: compiled quickly, runs slower'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l emit -d 'What to write, whatever the suffix says' -r -f -a "so\t'A shared library that `irc run` and the C ABI load'
o\t'A relocatable object'
ll\t'LLVM IR, optimised'
s\t'Assembly'
c\t'C source that gcc or clang compiles, for any processor unless one is named'
mlir\t'MLIR after a stage of the pipeline'
json\t'An ARK execution plan'
tar\t'A Model Library Format archive'
asm\t'An NPU program (not built yet)'
ptx\t'NVIDIA PTX (not built yet)'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l stage -d 'Stage after which .mlir is written; irc-opt --list-stages lists them [default: import]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l inputs -d 'Inputs that the structure of an ONNX model depends on, or of test vectors' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l arch -d 'Device a .json plan is for: ANY, CUDA, CUDA_80, ROCM_942, … [default: CUDA_80]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l processors -d 'Processors a .json plan may use [default: those of the device]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l planner -d 'Planner of a .json plan: irc optimises, ark gives what ARK\'s own planner gives' -r -f -a "irc\t'The optimising one'
ark\t'ARK\'s own, reproduced: one op after another'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l config-rules -d 'Configs and ranges pinned for ops of a .json plan: JSON, see docs/config-rules.md' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l mlf-version -d 'Version of the Model Library Format of a .tar: 5 or 7 [default: 5]' -r -f -a "5\t''
7\t''"
complete -c irc -n "__fish_irc_using_subcommand compile" -l codegen -d 'Code in a .tar: an object for one processor, or C source for any [default: o]' -r -f -a "o\t'A relocatable object, and a shared library'
c\t'C source, which needs a C compiler and nothing else'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l model-name -d 'Name of the model in a .tar [default: default, which all clients know]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l format -d 'Form of the file, where its content does not tell: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l library-path -d 'Further folder in which imported libraries may lie; beside the model they always may' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l allow-fetch -d 'Fetch imported libraries from servers, once, into this folder' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l shape -d 'Shape of an input whose sizes the model leaves open: data=1x3x224x224; once for each' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l functions -d 'What becomes of calls of the model\'s functions' -r -f -a "inline\t'The body in place of each call: fuses with what is around it'
outline\t'One function for all calls, where the body does not depend on the values of arguments'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l target-cpu -d 'Processor to generate code for, such as x86-64-v3 [default: native; for .c, any]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l results -d 'Which written buffers come back [default: outputs for irc compile, all for irc run]' -r -f -a "all\t'Every buffer written'
outputs\t'Buffers whose last value nothing else reads'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l explain-fusion -d 'Print how the ops were fused and why not further, to standard error' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l diagnostics -d 'How findings are written: text for people, or one JSON object a line' -r -f -a "text\t'With the source lines they point at'
json\t'One JSON object a line'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l color -d 'Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l progress -d 'What tells of progress; auto: a bar on a terminal, when it takes long' -r -f -a "auto\t'A bar on a terminal, nothing otherwise'
none\t'Nothing'
plain\t'A line for each step'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l keep-intermediates -d 'Short for --results all: intermediate buffers come back too'
complete -c irc -n "__fish_irc_using_subcommand compile" -l check-reproducible -d 'Compile a .tar twice, each time from nothing, and demand equal bytes'
complete -c irc -n "__fish_irc_using_subcommand compile" -l with-test-vectors -d 'Put inputs and what comes of them into a .tar: irc run --self-test compares'
complete -c irc -n "__fish_irc_using_subcommand compile" -l implicit-std -d 'Operators that nothing declares are those of the standard library'
complete -c irc -n "__fish_irc_using_subcommand compile" -l compat -d 'Rules that real files of Common IR\'s time break are warnings'
complete -c irc -n "__fish_irc_using_subcommand compile" -l ignore-control-inputs -d 'Let nodes run before those that their control inputs name'
complete -c irc -n "__fish_irc_using_subcommand compile" -l ark-accumulate -d 'Accumulate as ARK\'s kernels on CUDA_80 do: f16 in f16, f32 products through TF32'
complete -c irc -n "__fish_irc_using_subcommand compile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand compile" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand run" -l inputs -d 'Input buffers' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l outputs -d 'File for the output buffers; without it a summary is printed' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l expected -d 'Buffers that must come out, within the tolerance of their type' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l tolerance -d 'Tolerance relative to element and tensor, instead of that of each type' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l seed -d 'Fill inputs not given with random values; equal seeds give equal values everywhere' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l data-set -d 'ONNX test data of a model: input_N.pb, and output_N.pb that must come out' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l threads -d 'Threads to run a plan on; models and libraries run on one today' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l trace -d 'File for a timeline of the run of plans, for ui.perfetto.dev' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l transport -d 'How ranks reach each other; with mpi, mpirun starts a process for each' -r -f -a "inprocess\t'All of them run in one process'
mpi\t'Each runs in a process of its own, and writes files of its own: y.rank0.npz for y.npz'"
complete -c irc -n "__fish_irc_using_subcommand run" -l backend -d 'What runs the model' -r -f -a "llvm\t'Code from LLVM'
reference\t'The reference evaluator: slow, and the meaning of everything else'
cranelift\t'Code from Cranelift: compiled quickly, runs slower'
cuda\t'A GPU (not built yet)'"
complete -c irc -n "__fish_irc_using_subcommand run" -l format -d 'Form of the file, where its content does not tell: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l library-path -d 'Further folder in which imported libraries may lie; beside the model they always may' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l allow-fetch -d 'Fetch imported libraries from servers, once, into this folder' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l shape -d 'Shape of an input whose sizes the model leaves open: data=1x3x224x224; once for each' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l functions -d 'What becomes of calls of the model\'s functions' -r -f -a "inline\t'The body in place of each call: fuses with what is around it'
outline\t'One function for all calls, where the body does not depend on the values of arguments'"
complete -c irc -n "__fish_irc_using_subcommand run" -l target-cpu -d 'Processor to generate code for, such as x86-64-v3 [default: native; for .c, any]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l results -d 'Which written buffers come back [default: outputs for irc compile, all for irc run]' -r -f -a "all\t'Every buffer written'
outputs\t'Buffers whose last value nothing else reads'"
complete -c irc -n "__fish_irc_using_subcommand run" -l explain-fusion -d 'Print how the ops were fused and why not further, to standard error' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c irc -n "__fish_irc_using_subcommand run" -l diagnostics -d 'How findings are written: text for people, or one JSON object a line' -r -f -a "text\t'With the source lines they point at'
json\t'One JSON object a line'"
complete -c irc -n "__fish_irc_using_subcommand run" -l color -d 'Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand run" -l progress -d 'What tells of progress; auto: a bar on a terminal, when it takes long' -r -f -a "auto\t'A bar on a terminal, nothing otherwise'
none\t'Nothing'
plain\t'A line for each step'"
complete -c irc -n "__fish_irc_using_subcommand run" -l self-test -d 'Run an archive on the inputs that it holds, and compare with the outputs that it holds'
complete -c irc -n "__fish_irc_using_subcommand run" -l race-check -d 'Stop the run of plans at the first race; one that irc check finds must show in the run'
complete -c irc -n "__fish_irc_using_subcommand run" -l implicit-std -d 'Operators that nothing declares are those of the standard library'
complete -c irc -n "__fish_irc_using_subcommand run" -l compat -d 'Rules that real files of Common IR\'s time break are warnings'
complete -c irc -n "__fish_irc_using_subcommand run" -l ignore-control-inputs -d 'Let nodes run before those that their control inputs name'
complete -c irc -n "__fish_irc_using_subcommand run" -l ark-accumulate -d 'Accumulate as ARK\'s kernels on CUDA_80 do: f16 in f16, f32 products through TF32'
complete -c irc -n "__fish_irc_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand run" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand check" -l model -d 'Check that the plans compute this model; once for each rank' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l against -d 'Check that NPU programs are this one: a listing, a trace or .npu' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l format -d 'Form of the file, where its content does not tell: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l library-path -d 'Further folder in which imported libraries may lie; beside the model they always may' -r -F
complete -c irc -n "__fish_irc_using_subcommand check" -l allow-fetch -d 'Fetch imported libraries from servers, once, into this folder' -r -F
complete -c irc -n "__fish_irc_using_subcommand check" -l shape -d 'Shape of an input whose sizes the model leaves open: data=1x3x224x224; once for each' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l functions -d 'What becomes of calls of the model\'s functions' -r -f -a "inline\t'The body in place of each call: fuses with what is around it'
outline\t'One function for all calls, where the body does not depend on the values of arguments'"
complete -c irc -n "__fish_irc_using_subcommand check" -l diagnostics -d 'How findings are written: text for people, or one JSON object a line' -r -f -a "text\t'With the source lines they point at'
json\t'One JSON object a line'"
complete -c irc -n "__fish_irc_using_subcommand check" -l color -d 'Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand check" -l progress -d 'What tells of progress; auto: a bar on a terminal, when it takes long' -r -f -a "auto\t'A bar on a terminal, nothing otherwise'
none\t'Nothing'
plain\t'A line for each step'"
complete -c irc -n "__fish_irc_using_subcommand check" -l strict -d 'Keys that the format does not know are errors'
complete -c irc -n "__fish_irc_using_subcommand check" -l json -d 'Write all findings as one JSON array to standard output'
complete -c irc -n "__fish_irc_using_subcommand check" -l cost -d 'Estimate what plans cost; with --json, an object of findings and costs is written'
complete -c irc -n "__fish_irc_using_subcommand check" -l implicit-std -d 'Operators that nothing declares are those of the standard library'
complete -c irc -n "__fish_irc_using_subcommand check" -l compat -d 'Rules that real files of Common IR\'s time break are warnings'
complete -c irc -n "__fish_irc_using_subcommand check" -l ignore-control-inputs -d 'Let nodes run before those that their control inputs name'
complete -c irc -n "__fish_irc_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand check" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand bench" -l inputs -d 'Inputs of an ONNX model; others are random, and of size 1 where it leaves that open' -r -F
complete -c irc -n "__fish_irc_using_subcommand bench" -l threads -d 'Threads to run a plan on; models and libraries run on one today' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l seed -d 'Seed of the random inputs' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l time -d 'Seconds to measure, beside a tenth of that to warm up' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l iterations -d 'Runs to measure, instead of a time' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l peak-gflops -d 'Peak arithmetic in GFLOP/s, instead of measuring it' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l peak-bandwidth -d 'Peak memory traffic in GB/s, read and written, instead of measuring it' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l backend -d 'Who generates the code' -r -f -a "llvm\t'LLVM: the fastest code'
cranelift\t'Cranelift: compiled quickly, runs slower'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l target-cpu -d 'Processor to generate code for: native, or an LLVM name such as x86-64-v3' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l format -d 'Form of the file, where its content does not tell: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l library-path -d 'Further folder in which imported libraries may lie; beside the model they always may' -r -F
complete -c irc -n "__fish_irc_using_subcommand bench" -l allow-fetch -d 'Fetch imported libraries from servers, once, into this folder' -r -F
complete -c irc -n "__fish_irc_using_subcommand bench" -l shape -d 'Shape of an input whose sizes the model leaves open: data=1x3x224x224; once for each' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l functions -d 'What becomes of calls of the model\'s functions' -r -f -a "inline\t'The body in place of each call: fuses with what is around it'
outline\t'One function for all calls, where the body does not depend on the values of arguments'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l diagnostics -d 'How findings are written: text for people, or one JSON object a line' -r -f -a "text\t'With the source lines they point at'
json\t'One JSON object a line'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l color -d 'Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l progress -d 'What tells of progress; auto: a bar on a terminal, when it takes long' -r -f -a "auto\t'A bar on a terminal, nothing otherwise'
none\t'Nothing'
plain\t'A line for each step'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l json -d 'Write one JSON object instead of lines'
complete -c irc -n "__fish_irc_using_subcommand bench" -l ark-accumulate -d 'Accumulate as ARK\'s kernels on CUDA_80 do: f16 in f16, f32 products through TF32'
complete -c irc -n "__fish_irc_using_subcommand bench" -l implicit-std -d 'Operators that nothing declares are those of the standard library'
complete -c irc -n "__fish_irc_using_subcommand bench" -l compat -d 'Rules that real files of Common IR\'s time break are warnings'
complete -c irc -n "__fish_irc_using_subcommand bench" -l ignore-control-inputs -d 'Let nodes run before those that their control inputs name'
complete -c irc -n "__fish_irc_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand bench" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand simulate" -l frontend -d 'Frontend IR of the same network: programs of schedules of one core are made with it' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l program -d 'Program to run, instead of making one: a listing, a trace or .npu of the same schedule' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l trace -d 'File for a Perfetto trace' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l html -d 'File for a page that shows what lies where in the buffers, over time' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l link-rate -d 'Bytes that a link between cores carries in a cycle [default: transfers do not share links]' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l dram-rate -d 'Bytes that DRAM gives all cores together in a cycle; without it each has its own' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l outputs -d 'Also run the program on int8 tensors: file for the results of the network' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l inputs -d 'Inputs, by name' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l weights -d 'Weights, scales and biases: LAYER.weight, LAYER.scale, LAYER.bias' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l seed -d 'Draw the inputs and weights that are not given' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l diagnostics -d 'How findings are written: text for people, or one JSON object a line' -r -f -a "text\t'With the source lines they point at'
json\t'One JSON object a line'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l color -d 'Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l progress -d 'What tells of progress; auto: a bar on a terminal, when it takes long' -r -f -a "auto\t'A bar on a terminal, nothing otherwise'
none\t'Nothing'
plain\t'A line for each step'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l json -d 'Write one JSON object instead of lines'
complete -c irc -n "__fish_irc_using_subcommand simulate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand simulate" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench simulate help" -f -a "compile" -d 'Compile a model to a library, an archive, an object, LLVM IR, MLIR or a plan'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench simulate help" -f -a "run" -d 'Run a model, a compiled library, an archive, or plans'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench simulate help" -f -a "check" -d 'Check models and plans: every finding of every file'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench simulate help" -f -a "bench" -d 'Measure a model or a plan: latency, GFLOP/s, bytes, share of the roofline'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench simulate help" -f -a "simulate" -d 'Simulate an NPU schedule: cycles, traces, what it computes'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench simulate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
