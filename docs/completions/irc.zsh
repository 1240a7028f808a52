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
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
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
'-o+[Output file\: .so, .tar, .o, .c, .ll, .s, .mlir, .ptx, .json or .asm; - for standard output]:OUT:_files' \
'--output=[Output file\: .so, .tar, .o, .c, .ll, .s, .mlir, .ptx, .json or .asm; - for standard output]:OUT:_files' \
'--backend=[Code generator \[default\: llvm; for .ptx cuda\] \[applies to\: .so, .o, .ll, .s, .mlir, .tar, .ptx of models; .so, .ll, .mlir, .tar, .ptx of ARK plans\]]:NAME:((llvm\:"LLVM\: the fastest code"
cranelift\:"Cranelift\: fast compilation, slower code"
cuda\:"LLVM for NVIDIA GPUs\: PTX, which irc'\''s runtime runs"))' \
'--emit=[Kind of output; overrides the suffix of the output file]:KIND:((so\:"A shared library with irc'\''s C interface"
o\:"An object file"
ll\:"LLVM IR, optimised"
s\:"Assembly"
c\:"C source for gcc or clang, portable unless --target-cpu is given"
mlir\:"MLIR after the stage given by --stage"
json\:"An ARK execution plan, or with --target an NPU schedule"
tar\:"A Model Library Format archive"
asm\:"NPU programs of a Gemini schedule, or with --target of a model"
ptx\:"One kernel for an NVIDIA GPU, as PTX"))' \
'--stage=[Last stage to run for .mlir; see irc-opt --list-stages \[default\: import; of plans kernels\] \[applies to\: .mlir\]]:NAME:_default' \
'--frontend=[Layers of the network of a Gemini schedule, for an NPU program (.asm) \[applies to\: .asm\]]:FILE:_files' \
'(--frontend)--model=[Quantised model of a Gemini schedule, for the numbers of its program (.asm) \[applies to\: .asm of Gemini schedules\]]:MODEL:_default' \
'--inputs=[Input values to specialise an ONNX model for, or for test vectors \[applies to\: Common IR and ONNX files; .tar\]]:X.npz:_files' \
'--arch=[Device of a .json plan, .ptx, or code for a GPU\: CUDA_80, CUDA_90, … \[default\: CUDA_80\] \[applies to\: .json, .ptx, .so, .tar, .ll, .mlir\]]:NAME:_default' \
'--processors=[Number of processors that a .json plan may use \[default\: all of the device\] \[applies to\: .json\]]:N:_default' \
'--planner=[Planner for .json\: irc optimises, ark reproduces ARK'\''s own planner \[applies to\: .json\]]:NAME:((irc\:"The optimising planner of irc"
ark\:"A reproduction of ARK'\''s planner, which schedules one op after another"))' \
'--config-rules=[JSON file that fixes configs of ops in a .json plan; see docs/config-rules.md \[applies to\: .json\]]:FILE:_files' \
'--mlf-version=[Model Library Format version of a .tar \[default\: 5\] \[applies to\: .tar\]]:N:(5 7)' \
'--codegen=[Code in a .tar\: an object file (o), or portable C source (c) \[default\: o\] \[applies to\: .tar\]]:KIND:((o\:"An object file, and a shared library"
c\:"C source, which needs only a C compiler"))' \
'--model-name=[Name of the model in a .tar \[default\: default\] \[applies to\: .tar\]]:NAME:_default' \
'--report=[File for the cost of an NPU schedule, by segments and layers \[applies to\: .json, .asm of models\]]:R.json:_files' \
'--dialect=[Dialect of the schedule of a model \[applies to\: .json of models\]]:DIALECT:((a\:"That of the tool chain for one core\: with addresses, tiles and the order of DRAM accesses"
b\:"That of SET and Gemini\: several cores, without addresses"
c\:"The same with interleaved DRAM and addresses"))' \
'--target=[The NPU\: npu\:mesh=WxH, more keys in docs/npu-models.md \[applies to\: .json, .asm of models\]]:NPU:_default' \
'--batch=[Images that are scheduled at once \[default\: those of the model'\''s inputs\] \[applies to\: .json, .asm of models\]]:N:_default' \
'--objective=[What the schedule minimises \[default\: edp\] \[applies to\: .json, .asm of models\]]:WHAT:((edp\:"Energy times delay"
latency\:"Delay"
energy\:"Energy"))' \
'--set-tree=[Resource allocation tree of the schedule, in SET'\''s text form, instead of a search \[applies to\: .json, .asm of models\]]:T.txt:_files' \
'--format=[Format of the file if its content is ambiguous\: onnx, common-ir-text, …]:FORMAT:_default' \
'*--library-path=[Additional folder to search for imported libraries, after the model'\''s own folder \[applies to\: Common IR and ONNX files\]]:DIR:_files' \
'--allow-fetch=[Download imported libraries into this folder, unless they are already there \[applies to\: Common IR and ONNX files\]]:CACHE:_files' \
'*--shape=[Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable \[applies to\: Common IR and ONNX files\]]:NAME=SHAPE:_default' \
'--cache=[Room of caches of keys and values, in tokens\: a number or a name; new ones go in place \[applies to\: Common IR and ONNX files\]]:TOKENS:_default' \
'--functions=[How to compile calls of the model'\''s functions \[applies to\: Common IR and ONNX files\]]:HOW:((inline\:"Inline each call, so that it fuses with the surrounding ops"
outline\:"Share one function between calls where its structure does not depend on argument values"))' \
'--target-cpu=[Processor to generate code for, such as x86-64-v3 \[default\: native; for C source, any\] \[applies to\: .so, .o, .ll, .s, .c, .mlir, .tar of models\]]:CPU:_default' \
'--calibrate=[Quantise an f32 model to 8 bits, with samples of its inputs, along the first dimension \[applies to\: ARK models, Common IR and ONNX files, Gemini schedules\]]:X.npz:_files' \
'--calibrate-method=[Ranges of samples\: minmax, percentile=P or mse \[default\: minmax\] \[applies to\: ARK models, Common IR and ONNX files, Gemini schedules\]]:METHOD:_default' \
'--quantize=[Scales of weights \[default\: per-channel\] \[applies to\: ARK models, Common IR and ONNX files, Gemini schedules\]]:HOW:((per-channel\:"One for each output channel"
per-tensor\:"One for each tensor"))' \
'--quantize-results=[Results that become bytes \[default\: read; for an NPU all\] \[applies to\: ARK models, Common IR and ONNX files, Gemini schedules\]]:WHICH:((read\:"Those that products of bytes read"
all\:"All that can be, also outputs"))' \
'--results=[Values to return\: all, outputs or NAME,NAME \[default\: outputs; irc run of ARK\: all\] \[applies to\: .so, .o, .ll, .s, .c, .mlir, .tar, .ptx of ARK models, Common IR and ONNX files, Gemini frontend files; .json of Common IR and ONNX files, Gemini frontend files\]]:WHICH:_default' \
'--tuning=[File of irc tune with schedules of kernels, measured on the processor of the code \[applies to\: .so, .tar, .o, .ll, .s of ARK models, Common IR and ONNX files, Gemini frontend files\]]:TUNE.json:_files' \
'--explain-fusion=[Explain on standard error which ops were fused, and why no others \[applies to\: .so, .o, .ll, .s, .c, .mlir, .tar, .ptx of models\]]::FORMAT:((text\:"Text"
json\:"One JSON object"))' \
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
'--timestamps[Record when tasks and kernels of code for a GPU begin and end, for irc run --trace \[applies to\: .ptx, .so, .tar, .ll, .mlir\]]' \
'--no-persistent[For a GPU, a launch for each processor group of a plan or kernel of a model \[applies to\: .ptx, .so, .tar, .ll, .mlir\]]' \
'--check-reproducible[Compile a .tar twice from scratch and fail if the files differ \[applies to\: .tar\]]' \
'--with-test-vectors[Store inputs and outputs in a .tar for irc run --self-test \[applies to\: .tar\]]' \
'--host-fallback[Compute on the host what the NPU does not compute of a model \[applies to\: .json, .asm of models\]]' \
'--explain-schedule[Explain each segment of the schedule\: what was chosen, its bound, the runner-up \[applies to\: .json, .asm of models\]]' \
'--implicit-std[Resolve undeclared operators in the standard library \[applies to\: Common IR and ONNX files\]]' \
'--ignore-control-inputs[Ignore control inputs, so that they do not order nodes \[applies to\: Common IR and ONNX files\]]' \
'--assume-stated-shapes[Take sizes computed at run time to be those that the model states; checked at run time \[applies to\: Common IR and ONNX files\]]' \
'--ark-accumulate[Accumulate like ARK'\''s kernels on CUDA_80\: f16 sums in f16, f32 products in TF32 \[applies to\: ARK models\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':model -- Model, Gemini schedule, ARK plan, or MLIR of one; - for standard input:_default' \
'*::ranks -- ARK plans of the other ranks, for one kernel of GPUs:_default' \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
'--model=[Quantised model of an NPU program, for its weights \[applies to\: NPU programs\]]:MODEL:_default' \
'--inputs=[File with inputs]:X.npz:_files' \
'--outputs=[File for outputs; without it, a summary of them is printed]:Y.npz:_files' \
'--expected=[File with expected outputs, compared within the tolerance of their type]:E.npz:_files' \
'--tolerance=[Relative tolerance for --expected \[default\: depends on the type\]]:X:_default' \
'--seed=[Seed for random values of missing inputs; the same on every machine]:N:_default' \
'--data-set=[Folder with ONNX test data\: inputs input_N.pb, expected outputs output_N.pb \[applies to\: Common IR and ONNX files\]]:DIR:_files' \
'--threads=[Number of threads, from 1 to 1024; results do not depend on it]:N:_default' \
'--trace=[File for a timeline of running plans, and of kernels for GPUs, for ui.perfetto.dev \[applies to\: ARK plans; models, PTX, shared libraries, archives\]]:T.json:_files' \
'--max-instructions=[Instructions of all threads after which an emulated kernel is stopped \[default\: 2^36\] \[applies to\: models, ARK plans, PTX, shared libraries, archives\]]:N:_default' \
'--transport=[How ranks communicate; with mpi, mpirun starts one process per rank]:HOW:((inprocess\:"All ranks run in one process"
mpi\:"One process per rank, each with its own output files\: y.rank0.npz for y.npz"))' \
'--backend=[Code generator, evaluator, or a GPU \[default\: llvm; cuda for kernels of GPUs\] \[applies to\: models, ARK plans, PTX, shared libraries, archives\]]:NAME:((llvm\:"LLVM\: the fastest code"
cranelift\:"Cranelift\: fast compilation, slower code"
reference\:"The reference evaluator\: slow, defines the correct results"
cuda\:"An NVIDIA GPU, by its driver"
emulate\:"An emulated GPU\: slow, finds races and accesses out of bounds"))' \
'--arch=[GPU to compile for\: CUDA_80, CUDA_90 \[default\: a plan'\''s; that of the machine; CUDA_80\] \[applies to\: models, ARK plans\]]:NAME:_default' \
'--format=[Format of the file if its content is ambiguous\: onnx, common-ir-text, …]:FORMAT:_default' \
'*--library-path=[Additional folder to search for imported libraries, after the model'\''s own folder \[applies to\: Common IR and ONNX files, NPU programs\]]:DIR:_files' \
'--allow-fetch=[Download imported libraries into this folder, unless they are already there \[applies to\: Common IR and ONNX files, NPU programs\]]:CACHE:_files' \
'*--shape=[Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable \[applies to\: Common IR and ONNX files, NPU programs; shared libraries, archives\]]:NAME=SHAPE:_default' \
'--cache=[Room of caches of keys and values, in tokens\: a number or a name; new ones go in place \[applies to\: Common IR and ONNX files, NPU programs\]]:TOKENS:_default' \
'--functions=[How to compile calls of the model'\''s functions \[applies to\: Common IR and ONNX files, NPU programs\]]:HOW:((inline\:"Inline each call, so that it fuses with the surrounding ops"
outline\:"Share one function between calls where its structure does not depend on argument values"))' \
'--target-cpu=[Processor to generate code for, such as x86-64-v3 \[default\: native; for C source, any\] \[applies to\: models, ARK plans\]]:CPU:_default' \
'--calibrate=[Quantise an f32 model to 8 bits, with samples of its inputs, along the first dimension \[applies to\: ARK models, Common IR and ONNX files, NPU programs\]]:X.npz:_files' \
'--calibrate-method=[Ranges of samples\: minmax, percentile=P or mse \[default\: minmax\] \[applies to\: ARK models, Common IR and ONNX files, NPU programs\]]:METHOD:_default' \
'--quantize=[Scales of weights \[default\: per-channel\] \[applies to\: ARK models, Common IR and ONNX files, NPU programs\]]:HOW:((per-channel\:"One for each output channel"
per-tensor\:"One for each tensor"))' \
'--quantize-results=[Results that become bytes \[default\: read; for an NPU all\] \[applies to\: ARK models, Common IR and ONNX files, NPU programs\]]:WHICH:((read\:"Those that products of bytes read"
all\:"All that can be, also outputs"))' \
'--results=[Values to return\: all, outputs or NAME,NAME \[default\: outputs; irc run of ARK\: all\] \[applies to\: ARK models, Common IR and ONNX files, Gemini frontend files\]]:WHICH:_default' \
'--tuning=[File of irc tune with schedules of kernels, measured on the processor of the code \[applies to\: ARK models, Common IR and ONNX files, Gemini frontend files\]]:TUNE.json:_files' \
'--explain-fusion=[Explain on standard error which ops were fused, and why no others \[applies to\: models\]]::FORMAT:((text\:"Text"
json\:"One JSON object"))' \
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
'(--inputs --outputs --expected --seed)--self-test[Run an archive on its own test vectors and compare the outputs \[applies to\: archives\]]' \
'--race-check[Detect races of plans, and of kernels for GPUs with --backend emulate \[applies to\: ARK plans; models, ARK plans, PTX, shared libraries, archives\]]' \
'--implicit-std[Resolve undeclared operators in the standard library \[applies to\: Common IR and ONNX files, NPU programs\]]' \
'--ignore-control-inputs[Ignore control inputs, so that they do not order nodes \[applies to\: Common IR and ONNX files, NPU programs\]]' \
'--assume-stated-shapes[Take sizes computed at run time to be those that the model states; checked at run time \[applies to\: Common IR and ONNX files, NPU programs\]]' \
'--ark-accumulate[Accumulate like ARK'\''s kernels on CUDA_80\: f16 sums in f16, f32 products in TF32 \[applies to\: ARK models\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
'*::files -- Model, library, archive, NPU program, or the ARK plans of all ranks; - for standard input:_default' \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
'*--model=[Check that the plans implement this model; repeat for each rank \[applies to\: ARK plans\]]:MODEL:_default' \
'--against=[Compare NPU programs with this one\: a listing, a trace or .npu \[applies to\: NPU programs\]]:PROGRAM:_default' \
'--target=[The NPU\: npu\:mesh=WxH, more keys in docs/npu-models.md \[applies to\: models; Gemini schedules\]]:NPU:_default' \
'--batch=[Images that are scheduled at once \[default\: those of the model'\''s inputs\] \[applies to\: models\]]:N:_default' \
'--objective=[What the schedule minimises \[default\: edp\] \[applies to\: models; Gemini schedules\]]:WHAT:((edp\:"Energy times delay"
latency\:"Delay"
energy\:"Energy"))' \
'--set-tree=[Resource allocation tree of the schedule, in SET'\''s text form, instead of a search \[applies to\: models\]]:T.txt:_files' \
'--format=[Format of the file if its content is ambiguous\: onnx, common-ir-text, …]:FORMAT:_default' \
'*--library-path=[Additional folder to search for imported libraries, after the model'\''s own folder \[applies to\: Common IR and ONNX files\]]:DIR:_files' \
'--allow-fetch=[Download imported libraries into this folder, unless they are already there \[applies to\: Common IR and ONNX files\]]:CACHE:_files' \
'*--shape=[Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable \[applies to\: Common IR and ONNX files\]]:NAME=SHAPE:_default' \
'--cache=[Room of caches of keys and values, in tokens\: a number or a name; new ones go in place \[applies to\: Common IR and ONNX files\]]:TOKENS:_default' \
'--functions=[How to compile calls of the model'\''s functions \[applies to\: Common IR and ONNX files\]]:HOW:((inline\:"Inline each call, so that it fuses with the surrounding ops"
outline\:"Share one function between calls where its structure does not depend on argument values"))' \
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
'--strict[Treat unknown keys as errors \[applies to\: ARK models, ARK plans, Gemini schedules, Gemini frontend files\]]' \
'--json[Print all diagnostics as one JSON array on standard output]' \
'--compat[Report violations that are common in old Common IR files as warnings \[applies to\: Common IR and ONNX files\]]' \
'--cost[Estimate the cost of plans, schedules, and with --target models; as JSON with --json \[applies to\: models, ARK plans, Gemini schedules\]]' \
'--host-fallback[Divide a model between the NPU and the host, and note what the host computes \[applies to\: models\]]' \
'--explain-schedule[Explain each segment of the schedule\: what was chosen, its bound, the runner-up \[applies to\: models\]]' \
'--implicit-std[Resolve undeclared operators in the standard library \[applies to\: Common IR and ONNX files\]]' \
'--ignore-control-inputs[Ignore control inputs, so that they do not order nodes \[applies to\: Common IR and ONNX files\]]' \
'--assume-stated-shapes[Take sizes computed at run time to be those that the model states; checked at run time \[applies to\: Common IR and ONNX files\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
'*::files -- Models, plans, schedules, frontend files, NPU programs, PTX, archives; -\: standard input:_default' \
&& ret=0
;;
(bench)
_arguments "${_arguments_options[@]}" : \
'--inputs=[File with inputs; others are random. Sizes follow from it, or for models from --shape \[applies to\: models, shared libraries, archives, PTX\]]:X.npz:_files' \
'--threads=[Number of threads, from 1 to 1024; results do not depend on it]:N:_default' \
'--seed=[Seed for random inputs]:N:_default' \
'--time=[Seconds to measure, after warming up for a tenth of that]:S:_default' \
'--iterations=[Number of runs to measure; overrides --time]:N:_default' \
'--tuning=[File of irc tune with schedules of kernels, measured on the processor of the code \[applies to\: ARK models, Common IR and ONNX files, Gemini frontend files\]]:TUNE.json:_files' \
'--peak-gflops=[Peak arithmetic throughput in GFLOP/s; skips its measurement]:X:_default' \
'--peak-bandwidth=[Peak memory bandwidth in GB/s, reads plus writes; skips its measurement]:X:_default' \
'--backend=[Code generator]:NAME:((llvm\:"LLVM\: the fastest code"
cranelift\:"Cranelift\: fast compilation, slower code"
cuda\:"An NVIDIA GPU, by its driver"
emulate\:"An emulated GPU\: slow, finds races and accesses out of bounds"))' \
'--arch=[GPU to compile for\: CUDA_80, CUDA_90 \[default\: a plan'\''s; that of the machine; CUDA_80\] \[applies to\: models, ARK plans\]]:NAME:_default' \
'--target-cpu=[Processor to generate code for, such as x86-64-v3 \[default\: native; for C source, any\]]:CPU:_default' \
'--format=[Format of the file if its content is ambiguous\: onnx, common-ir-text, …]:FORMAT:_default' \
'*--library-path=[Additional folder to search for imported libraries, after the model'\''s own folder \[applies to\: Common IR and ONNX files\]]:DIR:_files' \
'--allow-fetch=[Download imported libraries into this folder, unless they are already there \[applies to\: Common IR and ONNX files\]]:CACHE:_files' \
'*--shape=[Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable \[applies to\: Common IR and ONNX files; shared libraries, archives\]]:NAME=SHAPE:_default' \
'--cache=[Room of caches of keys and values, in tokens\: a number or a name; new ones go in place \[applies to\: Common IR and ONNX files\]]:TOKENS:_default' \
'--functions=[How to compile calls of the model'\''s functions \[applies to\: Common IR and ONNX files\]]:HOW:((inline\:"Inline each call, so that it fuses with the surrounding ops"
outline\:"Share one function between calls where its structure does not depend on argument values"))' \
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
'--json[Print one JSON object instead of text]' \
'--in-place[Update caches in place\: the outputs that replace elements of inputs are in their memory \[applies to\: models, shared libraries\]]' \
'--profile[Print the time of each kernel \[applies to\: models, shared libraries, archives\]]' \
'--ark-accumulate[Accumulate like ARK'\''s kernels on CUDA_80\: f16 sums in f16, f32 products in TF32 \[applies to\: ARK models\]]' \
'--implicit-std[Resolve undeclared operators in the standard library \[applies to\: Common IR and ONNX files\]]' \
'--ignore-control-inputs[Ignore control inputs, so that they do not order nodes \[applies to\: Common IR and ONNX files\]]' \
'--assume-stated-shapes[Take sizes computed at run time to be those that the model states; checked at run time \[applies to\: Common IR and ONNX files\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':file -- Model, ARK plan, compiled library or archive; - for standard input:_default' \
&& ret=0
;;
(tune)
_arguments "${_arguments_options[@]}" : \
'-o+[File to write]:TUNE.json:_files' \
'--output=[File to write]:TUNE.json:_files' \
'--time=[Seconds to measure each kernel, besides the time to compile its schedules]:S:_default' \
'--target-cpu=[Processor to generate code for, such as x86-64-v3 \[default\: native; for C source, any\]]:CPU:_default' \
'--format=[Format of the file if its content is ambiguous\: onnx, common-ir-text, …]:FORMAT:_default' \
'*--library-path=[Additional folder to search for imported libraries, after the model'\''s own folder \[applies to\: Common IR and ONNX files\]]:DIR:_files' \
'--allow-fetch=[Download imported libraries into this folder, unless they are already there \[applies to\: Common IR and ONNX files\]]:CACHE:_files' \
'*--shape=[Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable \[applies to\: Common IR and ONNX files\]]:NAME=SHAPE:_default' \
'--cache=[Room of caches of keys and values, in tokens\: a number or a name; new ones go in place \[applies to\: Common IR and ONNX files\]]:TOKENS:_default' \
'--functions=[How to compile calls of the model'\''s functions \[applies to\: Common IR and ONNX files\]]:HOW:((inline\:"Inline each call, so that it fuses with the surrounding ops"
outline\:"Share one function between calls where its structure does not depend on argument values"))' \
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
'--ark-accumulate[Accumulate like ARK'\''s kernels on CUDA_80\: f16 sums in f16, f32 products in TF32 \[applies to\: ARK models\]]' \
'--implicit-std[Resolve undeclared operators in the standard library \[applies to\: Common IR and ONNX files\]]' \
'--ignore-control-inputs[Ignore control inputs, so that they do not order nodes \[applies to\: Common IR and ONNX files\]]' \
'--assume-stated-shapes[Take sizes computed at run time to be those that the model states; checked at run time \[applies to\: Common IR and ONNX files\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':model -- Model; - for standard input:_default' \
&& ret=0
;;
(simulate)
_arguments "${_arguments_options[@]}" : \
'--frontend=[Frontend file of the network; required for schedules of one core of other tools]:F:_files' \
'(--program --frontend)--model=[Model of the schedule, for its windows and numbers]:MODEL:_default' \
'*--shape=[Shape of an input of --model, as data=1x3x224x224; repeatable]:NAME=SHAPE:_default' \
'--target=[The NPU, for the rates of links and DRAM \[default\: that of the schedule\]]:NPU:_default' \
'--program=[Run this program of the schedule instead of compiling one\: a listing, a trace or .npu]:P:_files' \
'--trace=[File for a Perfetto trace]:OUT.json:_files' \
'--html=[File for an HTML page of segments, links, engines and buffers over time]:OUT.html:_files' \
'--link-rate=[Bytes per cycle of a link between cores \[default\: transfers do not share links\]]:BYTES:_default' \
'--dram-rate=[Bytes per cycle of DRAM, for all cores \[default\: cores do not share DRAM\]]:BYTES:_default' \
'--outputs=[Run the program on int8 tensors and write the network'\''s results to this file]:Y.npz:_files' \
'--inputs=[File with inputs, by name]:X.npz:_files' \
'--weights=[File with weights, scales and biases\: LAYER.weight, LAYER.scale, LAYER.bias]:W.npz:_files' \
'--seed=[Seed for random values of missing inputs and weights]:N:_default' \
'--calibrate=[Quantise an f32 model to 8 bits, with samples of its inputs, along the first dimension]:X.npz:_files' \
'--calibrate-method=[Ranges of samples\: minmax, percentile=P or mse \[default\: minmax\]]:METHOD:_default' \
'--quantize=[Scales of weights \[default\: per-channel\]]:HOW:((per-channel\:"One for each output channel"
per-tensor\:"One for each tensor"))' \
'--quantize-results=[Results that become bytes \[default\: read; for an NPU all\]]:WHICH:((read\:"Those that products of bytes read"
all\:"All that can be, also outputs"))' \
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
'--host-fallback[The schedule is of a part of --model, of which the host computes the rest]' \
'--json[Print one JSON object instead of text]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':schedule -- Gemini schedule; may be gzip-compressed:_files' \
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
(tune)
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
'compile:Compile a model to a library, archive, object file, LLVM IR, MLIR, PTX or ARK plan' \
'run:Run a model, compiled library, archive, or the ARK plans of all ranks' \
'check:Check files and report every error' \
'bench:Benchmark a model or plan\: latency, GFLOP/s, bytes, percentage of the roofline' \
'tune:Measure schedules of a model'\''s kernels, for --tuning' \
'simulate:Simulate an NPU schedule\: cycles, traces, results' \
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
'compile:Compile a model to a library, archive, object file, LLVM IR, MLIR, PTX or ARK plan' \
'run:Run a model, compiled library, archive, or the ARK plans of all ranks' \
'check:Check files and report every error' \
'bench:Benchmark a model or plan\: latency, GFLOP/s, bytes, percentage of the roofline' \
'tune:Measure schedules of a model'\''s kernels, for --tuning' \
'simulate:Simulate an NPU schedule\: cycles, traces, results' \
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
(( $+functions[_irc__subcmd__help__subcmd__tune_commands] )) ||
_irc__subcmd__help__subcmd__tune_commands() {
    local commands; commands=()
    _describe -t commands 'irc help tune commands' commands "$@"
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
(( $+functions[_irc__subcmd__tune_commands] )) ||
_irc__subcmd__tune_commands() {
    local commands; commands=()
    _describe -t commands 'irc tune commands' commands "$@"
}

if [ "$funcstack[1]" = "_irc" ]; then
    _irc "$@"
else
    compdef _irc irc
fi
