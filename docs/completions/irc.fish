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

complete -c irc -n "__fish_irc_needs_command" -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc -n "__fish_irc_needs_command" -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_needs_command" -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc -n "__fish_irc_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_needs_command" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_needs_command" -f -a "compile" -d 'Compile a model to a library, archive, object file, LLVM IR, MLIR, PTX or ARK plan'
complete -c irc -n "__fish_irc_needs_command" -f -a "run" -d 'Run a model, compiled library, archive, or the ARK plans of all ranks'
complete -c irc -n "__fish_irc_needs_command" -f -a "check" -d 'Check files and report every error'
complete -c irc -n "__fish_irc_needs_command" -f -a "bench" -d 'Benchmark a model or plan: latency, GFLOP/s, bytes, percentage of the roofline'
complete -c irc -n "__fish_irc_needs_command" -f -a "tune" -d 'Measure schedules of a model\'s kernels, for --tuning'
complete -c irc -n "__fish_irc_needs_command" -f -a "simulate" -d 'Simulate an NPU schedule: cycles, traces, results'
complete -c irc -n "__fish_irc_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c irc -n "__fish_irc_using_subcommand compile" -s o -l output -d 'Output file: .so, .tar, .o, .c, .ll, .s, .mlir, .ptx, .json or .asm; - for standard output' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l backend -d 'Code generator [default: llvm; for .ptx cuda] [applies to: .so, .o, .ll, .s, .mlir, .tar, .ptx of models; .so, .ll, .mlir, .tar, .ptx of ARK plans]' -r -f -a "llvm\t'LLVM: the fastest code'
cranelift\t'Cranelift: fast compilation, slower code'
cuda\t'LLVM for NVIDIA GPUs: PTX, which irc\'s runtime runs'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l emit -d 'Kind of output; overrides the suffix of the output file' -r -f -a "so\t'A shared library with irc\'s C interface'
o\t'An object file'
ll\t'LLVM IR, optimised'
s\t'Assembly'
c\t'C source for gcc or clang, portable unless --target-cpu is given'
mlir\t'MLIR after the stage given by --stage'
json\t'An ARK execution plan, or with --target an NPU schedule'
tar\t'A Model Library Format archive'
asm\t'NPU programs of a Gemini schedule, or with --target of a model'
ptx\t'One kernel for an NVIDIA GPU, as PTX'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l stage -d 'Last stage to run for .mlir; see irc-opt --list-stages [default: import; of plans kernels] [applies to: .mlir]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l frontend -d 'Layers of the network of a Gemini schedule, for an NPU program (.asm) [applies to: .asm]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l model -d 'Quantised model of a Gemini schedule, for the numbers of its program (.asm) [applies to: .asm of Gemini schedules]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l inputs -d 'Input values to specialise an ONNX model for, or for test vectors [applies to: Common IR and ONNX files; .tar]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l arch -d 'Device of a .json plan, .ptx, or code for a GPU: CUDA_80, CUDA_90, … [default: CUDA_80] [applies to: .json, .ptx, .so, .tar, .ll, .mlir]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l processors -d 'Number of processors that a .json plan may use [default: all of the device] [applies to: .json]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l planner -d 'Planner for .json: irc optimises, ark reproduces ARK\'s own planner [applies to: .json]' -r -f -a "irc\t'The optimising planner of irc'
ark\t'A reproduction of ARK\'s planner, which schedules one op after another'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l config-rules -d 'JSON file that fixes configs of ops in a .json plan; see docs/config-rules.md [applies to: .json]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l mlf-version -d 'Model Library Format version of a .tar [default: 5] [applies to: .tar]' -r -f -a "5\t''
7\t''"
complete -c irc -n "__fish_irc_using_subcommand compile" -l codegen -d 'Code in a .tar: an object file (o), or portable C source (c) [default: o] [applies to: .tar]' -r -f -a "o\t'An object file, and a shared library'
c\t'C source, which needs only a C compiler'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l model-name -d 'Name of the model in a .tar [default: default] [applies to: .tar]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l report -d 'File for the cost of an NPU schedule, by segments and layers [applies to: .json, .asm of models]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l dialect -d 'Dialect of the schedule of a model [applies to: .json of models]' -r -f -a "a\t'That of the tool chain for one core: with addresses, tiles and the order of DRAM accesses'
b\t'That of SET and Gemini: several cores, without addresses'
c\t'The same with interleaved DRAM and addresses'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l target -d 'The NPU: npu:mesh=WxH, more keys in docs/npu-models.md [applies to: .json, .asm of models]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l batch -d 'Images that are scheduled at once [default: those of the model\'s inputs] [applies to: .json, .asm of models]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l objective -d 'What the schedule minimises [default: edp] [applies to: .json, .asm of models]' -r -f -a "edp\t'Energy times delay'
latency\t'Delay'
energy\t'Energy'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l set-tree -d 'Resource allocation tree of the schedule, in SET\'s text form, instead of a search [applies to: .json, .asm of models]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l format -d 'Format of the file if its content is ambiguous: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l library-path -d 'Additional folder to search for imported libraries, after the model\'s own folder [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l allow-fetch -d 'Download imported libraries into this folder, unless they are already there [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l shape -d 'Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable [applies to: Common IR and ONNX files]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l cache -d 'Room of caches of keys and values, in tokens: a number or a name; new ones go in place [applies to: Common IR and ONNX files]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l functions -d 'How to compile calls of the model\'s functions [applies to: Common IR and ONNX files]' -r -f -a "inline\t'Inline each call, so that it fuses with the surrounding ops'
outline\t'Share one function between calls where its structure does not depend on argument values'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l target-cpu -d 'Processor to generate code for, such as x86-64-v3 [default: native; for C source, any] [applies to: .so, .o, .ll, .s, .c, .mlir, .tar of models]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l calibrate -d 'Quantise an f32 model to 8 bits, with samples of its inputs, along the first dimension [applies to: ARK models, Common IR and ONNX files, Gemini schedules]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l calibrate-method -d 'Ranges of samples: minmax, percentile=P or mse [default: minmax] [applies to: ARK models, Common IR and ONNX files, Gemini schedules]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l quantize -d 'Scales of weights [default: per-channel] [applies to: ARK models, Common IR and ONNX files, Gemini schedules]' -r -f -a "per-channel\t'One for each output channel'
per-tensor\t'One for each tensor'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l quantize-results -d 'Results that become bytes [default: read; for an NPU all] [applies to: ARK models, Common IR and ONNX files, Gemini schedules]' -r -f -a "read\t'Those that products of bytes read'
all\t'All that can be, also outputs'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l results -d 'Values to return: all, outputs or NAME,NAME [default: outputs; irc run of ARK: all] [applies to: .so, .o, .ll, .s, .c, .mlir, .tar, .ptx of ARK models, Common IR and ONNX files, Gemini frontend files; .json of Common IR and ONNX files, Gemini frontend files]' -r
complete -c irc -n "__fish_irc_using_subcommand compile" -l tuning -d 'File of irc tune with schedules of kernels, measured on the processor of the code [applies to: .so, .tar, .o, .ll, .s of ARK models, Common IR and ONNX files, Gemini frontend files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand compile" -l explain-fusion -d 'Explain on standard error which ops were fused, and why no others [applies to: .so, .o, .ll, .s, .c, .mlir, .tar, .ptx of models]' -r -f -a "text\t'Text'
json\t'One JSON object'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc -n "__fish_irc_using_subcommand compile" -l timestamps -d 'Record when tasks and kernels of code for a GPU begin and end, for irc run --trace [applies to: .ptx, .so, .tar, .ll, .mlir]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l no-persistent -d 'For a GPU, a launch for each processor group of a plan or kernel of a model [applies to: .ptx, .so, .tar, .ll, .mlir]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l check-reproducible -d 'Compile a .tar twice from scratch and fail if the files differ [applies to: .tar]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l with-test-vectors -d 'Store inputs and outputs in a .tar for irc run --self-test [applies to: .tar]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l host-fallback -d 'Compute on the host what the NPU does not compute of a model [applies to: .json, .asm of models]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l explain-schedule -d 'Explain each segment of the schedule: what was chosen, its bound, the runner-up [applies to: .json, .asm of models]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l implicit-std -d 'Resolve undeclared operators in the standard library [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l ignore-control-inputs -d 'Ignore control inputs, so that they do not order nodes [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l assume-stated-shapes -d 'Take sizes computed at run time to be those that the model states; checked at run time [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand compile" -l ark-accumulate -d 'Accumulate like ARK\'s kernels on CUDA_80: f16 sums in f16, f32 products in TF32 [applies to: ARK models]'
complete -c irc -n "__fish_irc_using_subcommand compile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand compile" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand run" -l model -d 'Quantised model of an NPU program, for its weights [applies to: NPU programs]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l inputs -d 'File with inputs' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l outputs -d 'File for outputs; without it, a summary of them is printed' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l expected -d 'File with expected outputs, compared within the tolerance of their type' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l tolerance -d 'Relative tolerance for --expected [default: depends on the type]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l seed -d 'Seed for random values of missing inputs; the same on every machine' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l data-set -d 'Folder with ONNX test data: inputs input_N.pb, expected outputs output_N.pb [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l threads -d 'Number of threads, from 1 to 1024; results do not depend on it' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l trace -d 'File for a timeline of running plans, and of kernels for GPUs, for ui.perfetto.dev [applies to: ARK plans; models, PTX, shared libraries, archives]' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l max-instructions -d 'Instructions of all threads after which an emulated kernel is stopped [default: 2^36] [applies to: models, ARK plans, PTX, shared libraries, archives]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l transport -d 'How ranks communicate; with mpi, mpirun starts one process per rank' -r -f -a "inprocess\t'All ranks run in one process'
mpi\t'One process per rank, each with its own output files: y.rank0.npz for y.npz'"
complete -c irc -n "__fish_irc_using_subcommand run" -l backend -d 'Code generator, evaluator, or a GPU [default: llvm; cuda for kernels of GPUs] [applies to: models, ARK plans, PTX, shared libraries, archives]' -r -f -a "llvm\t'LLVM: the fastest code'
cranelift\t'Cranelift: fast compilation, slower code'
reference\t'The reference evaluator: slow, defines the correct results'
cuda\t'An NVIDIA GPU, by its driver'
emulate\t'An emulated GPU: slow, finds races and accesses out of bounds'"
complete -c irc -n "__fish_irc_using_subcommand run" -l arch -d 'GPU to compile for: CUDA_80, CUDA_90 [default: a plan\'s; that of the machine; CUDA_80] [applies to: models, ARK plans]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l format -d 'Format of the file if its content is ambiguous: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l library-path -d 'Additional folder to search for imported libraries, after the model\'s own folder [applies to: Common IR and ONNX files, NPU programs]' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l allow-fetch -d 'Download imported libraries into this folder, unless they are already there [applies to: Common IR and ONNX files, NPU programs]' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l shape -d 'Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable [applies to: Common IR and ONNX files, NPU programs; shared libraries, archives]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l cache -d 'Room of caches of keys and values, in tokens: a number or a name; new ones go in place [applies to: Common IR and ONNX files, NPU programs]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l functions -d 'How to compile calls of the model\'s functions [applies to: Common IR and ONNX files, NPU programs]' -r -f -a "inline\t'Inline each call, so that it fuses with the surrounding ops'
outline\t'Share one function between calls where its structure does not depend on argument values'"
complete -c irc -n "__fish_irc_using_subcommand run" -l target-cpu -d 'Processor to generate code for, such as x86-64-v3 [default: native; for C source, any] [applies to: models, ARK plans]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l calibrate -d 'Quantise an f32 model to 8 bits, with samples of its inputs, along the first dimension [applies to: ARK models, Common IR and ONNX files, NPU programs]' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l calibrate-method -d 'Ranges of samples: minmax, percentile=P or mse [default: minmax] [applies to: ARK models, Common IR and ONNX files, NPU programs]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l quantize -d 'Scales of weights [default: per-channel] [applies to: ARK models, Common IR and ONNX files, NPU programs]' -r -f -a "per-channel\t'One for each output channel'
per-tensor\t'One for each tensor'"
complete -c irc -n "__fish_irc_using_subcommand run" -l quantize-results -d 'Results that become bytes [default: read; for an NPU all] [applies to: ARK models, Common IR and ONNX files, NPU programs]' -r -f -a "read\t'Those that products of bytes read'
all\t'All that can be, also outputs'"
complete -c irc -n "__fish_irc_using_subcommand run" -l results -d 'Values to return: all, outputs or NAME,NAME [default: outputs; irc run of ARK: all] [applies to: ARK models, Common IR and ONNX files, Gemini frontend files]' -r
complete -c irc -n "__fish_irc_using_subcommand run" -l tuning -d 'File of irc tune with schedules of kernels, measured on the processor of the code [applies to: ARK models, Common IR and ONNX files, Gemini frontend files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand run" -l explain-fusion -d 'Explain on standard error which ops were fused, and why no others [applies to: models]' -r -f -a "text\t'Text'
json\t'One JSON object'"
complete -c irc -n "__fish_irc_using_subcommand run" -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc -n "__fish_irc_using_subcommand run" -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand run" -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc -n "__fish_irc_using_subcommand run" -l self-test -d 'Run an archive on its own test vectors and compare the outputs [applies to: archives]'
complete -c irc -n "__fish_irc_using_subcommand run" -l race-check -d 'Detect races of plans, and of kernels for GPUs with --backend emulate [applies to: ARK plans; models, ARK plans, PTX, shared libraries, archives]'
complete -c irc -n "__fish_irc_using_subcommand run" -l implicit-std -d 'Resolve undeclared operators in the standard library [applies to: Common IR and ONNX files, NPU programs]'
complete -c irc -n "__fish_irc_using_subcommand run" -l ignore-control-inputs -d 'Ignore control inputs, so that they do not order nodes [applies to: Common IR and ONNX files, NPU programs]'
complete -c irc -n "__fish_irc_using_subcommand run" -l assume-stated-shapes -d 'Take sizes computed at run time to be those that the model states; checked at run time [applies to: Common IR and ONNX files, NPU programs]'
complete -c irc -n "__fish_irc_using_subcommand run" -l ark-accumulate -d 'Accumulate like ARK\'s kernels on CUDA_80: f16 sums in f16, f32 products in TF32 [applies to: ARK models]'
complete -c irc -n "__fish_irc_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand run" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand check" -l model -d 'Check that the plans implement this model; repeat for each rank [applies to: ARK plans]' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l against -d 'Compare NPU programs with this one: a listing, a trace or .npu [applies to: NPU programs]' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l target -d 'The NPU: npu:mesh=WxH, more keys in docs/npu-models.md [applies to: models; Gemini schedules]' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l batch -d 'Images that are scheduled at once [default: those of the model\'s inputs] [applies to: models]' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l objective -d 'What the schedule minimises [default: edp] [applies to: models; Gemini schedules]' -r -f -a "edp\t'Energy times delay'
latency\t'Delay'
energy\t'Energy'"
complete -c irc -n "__fish_irc_using_subcommand check" -l set-tree -d 'Resource allocation tree of the schedule, in SET\'s text form, instead of a search [applies to: models]' -r -F
complete -c irc -n "__fish_irc_using_subcommand check" -l format -d 'Format of the file if its content is ambiguous: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l library-path -d 'Additional folder to search for imported libraries, after the model\'s own folder [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand check" -l allow-fetch -d 'Download imported libraries into this folder, unless they are already there [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand check" -l shape -d 'Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable [applies to: Common IR and ONNX files]' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l cache -d 'Room of caches of keys and values, in tokens: a number or a name; new ones go in place [applies to: Common IR and ONNX files]' -r
complete -c irc -n "__fish_irc_using_subcommand check" -l functions -d 'How to compile calls of the model\'s functions [applies to: Common IR and ONNX files]' -r -f -a "inline\t'Inline each call, so that it fuses with the surrounding ops'
outline\t'Share one function between calls where its structure does not depend on argument values'"
complete -c irc -n "__fish_irc_using_subcommand check" -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc -n "__fish_irc_using_subcommand check" -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand check" -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc -n "__fish_irc_using_subcommand check" -l strict -d 'Treat unknown keys as errors [applies to: ARK models, ARK plans, Gemini schedules, Gemini frontend files]'
complete -c irc -n "__fish_irc_using_subcommand check" -l json -d 'Print all diagnostics as one JSON array on standard output'
complete -c irc -n "__fish_irc_using_subcommand check" -l compat -d 'Report violations that are common in old Common IR files as warnings [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand check" -l cost -d 'Estimate the cost of plans, schedules, and with --target models; as JSON with --json [applies to: models, ARK plans, Gemini schedules]'
complete -c irc -n "__fish_irc_using_subcommand check" -l host-fallback -d 'Divide a model between the NPU and the host, and note what the host computes [applies to: models]'
complete -c irc -n "__fish_irc_using_subcommand check" -l explain-schedule -d 'Explain each segment of the schedule: what was chosen, its bound, the runner-up [applies to: models]'
complete -c irc -n "__fish_irc_using_subcommand check" -l implicit-std -d 'Resolve undeclared operators in the standard library [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand check" -l ignore-control-inputs -d 'Ignore control inputs, so that they do not order nodes [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand check" -l assume-stated-shapes -d 'Take sizes computed at run time to be those that the model states; checked at run time [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand check" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand bench" -l inputs -d 'File with inputs; others are random. Sizes follow from it, or for models from --shape [applies to: models, shared libraries, archives, PTX]' -r -F
complete -c irc -n "__fish_irc_using_subcommand bench" -l threads -d 'Number of threads, from 1 to 1024; results do not depend on it' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l seed -d 'Seed for random inputs' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l time -d 'Seconds to measure, after warming up for a tenth of that' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l iterations -d 'Number of runs to measure; overrides --time' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l tuning -d 'File of irc tune with schedules of kernels, measured on the processor of the code [applies to: ARK models, Common IR and ONNX files, Gemini frontend files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand bench" -l peak-gflops -d 'Peak arithmetic throughput in GFLOP/s; skips its measurement' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l peak-bandwidth -d 'Peak memory bandwidth in GB/s, reads plus writes; skips its measurement' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l backend -d 'Code generator' -r -f -a "llvm\t'LLVM: the fastest code'
cranelift\t'Cranelift: fast compilation, slower code'
cuda\t'An NVIDIA GPU, by its driver'
emulate\t'An emulated GPU: slow, finds races and accesses out of bounds'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l arch -d 'GPU to compile for: CUDA_80, CUDA_90 [default: a plan\'s; that of the machine; CUDA_80] [applies to: models, ARK plans]' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l target-cpu -d 'Processor to generate code for, such as x86-64-v3 [default: native; for C source, any]' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l format -d 'Format of the file if its content is ambiguous: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l library-path -d 'Additional folder to search for imported libraries, after the model\'s own folder [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand bench" -l allow-fetch -d 'Download imported libraries into this folder, unless they are already there [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand bench" -l shape -d 'Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable [applies to: Common IR and ONNX files; shared libraries, archives]' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l cache -d 'Room of caches of keys and values, in tokens: a number or a name; new ones go in place [applies to: Common IR and ONNX files]' -r
complete -c irc -n "__fish_irc_using_subcommand bench" -l functions -d 'How to compile calls of the model\'s functions [applies to: Common IR and ONNX files]' -r -f -a "inline\t'Inline each call, so that it fuses with the surrounding ops'
outline\t'Share one function between calls where its structure does not depend on argument values'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc -n "__fish_irc_using_subcommand bench" -l json -d 'Print one JSON object instead of text'
complete -c irc -n "__fish_irc_using_subcommand bench" -l in-place -d 'Update caches in place: the outputs that replace elements of inputs are in their memory [applies to: models, shared libraries]'
complete -c irc -n "__fish_irc_using_subcommand bench" -l profile -d 'Print the time of each kernel [applies to: models, shared libraries, archives]'
complete -c irc -n "__fish_irc_using_subcommand bench" -l ark-accumulate -d 'Accumulate like ARK\'s kernels on CUDA_80: f16 sums in f16, f32 products in TF32 [applies to: ARK models]'
complete -c irc -n "__fish_irc_using_subcommand bench" -l implicit-std -d 'Resolve undeclared operators in the standard library [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand bench" -l ignore-control-inputs -d 'Ignore control inputs, so that they do not order nodes [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand bench" -l assume-stated-shapes -d 'Take sizes computed at run time to be those that the model states; checked at run time [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand bench" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand tune" -s o -l output -d 'File to write' -r -F
complete -c irc -n "__fish_irc_using_subcommand tune" -l time -d 'Seconds to measure each kernel, besides the time to compile its schedules' -r
complete -c irc -n "__fish_irc_using_subcommand tune" -l target-cpu -d 'Processor to generate code for, such as x86-64-v3 [default: native; for C source, any]' -r
complete -c irc -n "__fish_irc_using_subcommand tune" -l format -d 'Format of the file if its content is ambiguous: onnx, common-ir-text, …' -r
complete -c irc -n "__fish_irc_using_subcommand tune" -l library-path -d 'Additional folder to search for imported libraries, after the model\'s own folder [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand tune" -l allow-fetch -d 'Download imported libraries into this folder, unless they are already there [applies to: Common IR and ONNX files]' -r -F
complete -c irc -n "__fish_irc_using_subcommand tune" -l shape -d 'Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable [applies to: Common IR and ONNX files]' -r
complete -c irc -n "__fish_irc_using_subcommand tune" -l cache -d 'Room of caches of keys and values, in tokens: a number or a name; new ones go in place [applies to: Common IR and ONNX files]' -r
complete -c irc -n "__fish_irc_using_subcommand tune" -l functions -d 'How to compile calls of the model\'s functions [applies to: Common IR and ONNX files]' -r -f -a "inline\t'Inline each call, so that it fuses with the surrounding ops'
outline\t'Share one function between calls where its structure does not depend on argument values'"
complete -c irc -n "__fish_irc_using_subcommand tune" -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc -n "__fish_irc_using_subcommand tune" -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand tune" -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc -n "__fish_irc_using_subcommand tune" -l ark-accumulate -d 'Accumulate like ARK\'s kernels on CUDA_80: f16 sums in f16, f32 products in TF32 [applies to: ARK models]'
complete -c irc -n "__fish_irc_using_subcommand tune" -l implicit-std -d 'Resolve undeclared operators in the standard library [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand tune" -l ignore-control-inputs -d 'Ignore control inputs, so that they do not order nodes [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand tune" -l assume-stated-shapes -d 'Take sizes computed at run time to be those that the model states; checked at run time [applies to: Common IR and ONNX files]'
complete -c irc -n "__fish_irc_using_subcommand tune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand tune" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand simulate" -l frontend -d 'Frontend file of the network; required for schedules of one core of other tools' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l model -d 'Model of the schedule, for its windows and numbers' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l shape -d 'Shape of an input of --model, as data=1x3x224x224; repeatable' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l target -d 'The NPU, for the rates of links and DRAM [default: that of the schedule]' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l program -d 'Run this program of the schedule instead of compiling one: a listing, a trace or .npu' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l trace -d 'File for a Perfetto trace' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l html -d 'File for an HTML page of segments, links, engines and buffers over time' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l link-rate -d 'Bytes per cycle of a link between cores [default: transfers do not share links]' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l dram-rate -d 'Bytes per cycle of DRAM, for all cores [default: cores do not share DRAM]' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l outputs -d 'Run the program on int8 tensors and write the network\'s results to this file' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l inputs -d 'File with inputs, by name' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l weights -d 'File with weights, scales and biases: LAYER.weight, LAYER.scale, LAYER.bias' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l seed -d 'Seed for random values of missing inputs and weights' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l calibrate -d 'Quantise an f32 model to 8 bits, with samples of its inputs, along the first dimension' -r -F
complete -c irc -n "__fish_irc_using_subcommand simulate" -l calibrate-method -d 'Ranges of samples: minmax, percentile=P or mse [default: minmax]' -r
complete -c irc -n "__fish_irc_using_subcommand simulate" -l quantize -d 'Scales of weights [default: per-channel]' -r -f -a "per-channel\t'One for each output channel'
per-tensor\t'One for each tensor'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l quantize-results -d 'Results that become bytes [default: read; for an NPU all]' -r -f -a "read\t'Those that products of bytes read'
all\t'All that can be, also outputs'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc -n "__fish_irc_using_subcommand simulate" -l host-fallback -d 'The schedule is of a part of --model, of which the host computes the rest'
complete -c irc -n "__fish_irc_using_subcommand simulate" -l json -d 'Print one JSON object instead of text'
complete -c irc -n "__fish_irc_using_subcommand simulate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc -n "__fish_irc_using_subcommand simulate" -s V -l version -d 'Print version'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench tune simulate help" -f -a "compile" -d 'Compile a model to a library, archive, object file, LLVM IR, MLIR, PTX or ARK plan'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench tune simulate help" -f -a "run" -d 'Run a model, compiled library, archive, or the ARK plans of all ranks'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench tune simulate help" -f -a "check" -d 'Check files and report every error'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench tune simulate help" -f -a "bench" -d 'Benchmark a model or plan: latency, GFLOP/s, bytes, percentage of the roofline'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench tune simulate help" -f -a "tune" -d 'Measure schedules of a model\'s kernels, for --tuning'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench tune simulate help" -f -a "simulate" -d 'Simulate an NPU schedule: cycles, traces, results'
complete -c irc -n "__fish_irc_using_subcommand help; and not __fish_seen_subcommand_from compile run check bench tune simulate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
