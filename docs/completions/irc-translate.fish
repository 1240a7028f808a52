complete -c irc-translate -s o -l output -d 'Output file, compressed if it ends in .gz; - for standard output' -r -F
complete -c irc-translate -l arch -d 'Device of a plan: ANY, CUDA, CUDA_80, ROCM_942, … [default: CUDA_80] [applies to: --emit-plan]' -r
complete -c irc-translate -l processors -d 'Number of processors that a plan may use [default: all of the device] [applies to: --emit-plan]' -r
complete -c irc-translate -l planner -d 'Planner of a plan: irc optimises, ark reproduces ARK\'s own planner [applies to: --emit-plan]' -r -f -a "irc\t'The optimising planner of irc'
ark\t'A reproduction of ARK\'s planner, which schedules one op after another'"
complete -c irc-translate -l config-rules -d 'JSON file that fixes configs of ops in a plan; see docs/config-rules.md [applies to: --emit-plan]' -r -F
complete -c irc-translate -l frontend -d 'Frontend file of a Gemini schedule [applies to: Gemini schedules]' -r -F
complete -c irc-translate -l dialect -d 'Dialect of the schedule of a model [applies to: --emit-gemini of ARK models, Common IR and ONNX files, MLIR]' -r -f -a "a\t'That of the tool chain for one core: with addresses, tiles and the order of DRAM accesses'
b\t'That of SET and Gemini: several cores, without addresses'
c\t'The same with interleaved DRAM and addresses'"
complete -c irc-translate -l target -d 'The NPU: npu:mesh=WxH, more keys in docs/npu-models.md [applies to: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR]' -r
complete -c irc-translate -l batch -d 'Images that are scheduled at once [default: those of the model\'s inputs] [applies to: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR]' -r
complete -c irc-translate -l objective -d 'What the schedule minimises [default: edp] [applies to: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR]' -r -f -a "edp\t'Energy times delay'
latency\t'Delay'
energy\t'Energy'"
complete -c irc-translate -l set-tree -d 'Resource allocation tree of the schedule, in SET\'s text form, instead of a search [applies to: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR]' -r -F
complete -c irc-translate -l format -d 'Format of the file if its content is ambiguous: onnx, common-ir-text, …' -r
complete -c irc-translate -l library-path -d 'Additional folder to search for imported libraries, after the model\'s own folder [applies to: Common IR and ONNX files; --emit-common-ir, --emit-onnx]' -r -F
complete -c irc-translate -l allow-fetch -d 'Download imported libraries into this folder, unless they are already there [applies to: Common IR and ONNX files; --emit-common-ir, --emit-onnx]' -r -F
complete -c irc-translate -l shape -d 'Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable [applies to: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files]' -r
complete -c irc-translate -l cache -d 'Room of caches of keys and values, in tokens: a number or a name; new ones go in place [applies to: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files]' -r
complete -c irc-translate -l functions -d 'How to compile calls of the model\'s functions [applies to: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files]' -r -f -a "inline\t'Inline each call, so that it fuses with the surrounding ops'
outline\t'Share one function between calls where its structure does not depend on argument values'"
complete -c irc-translate -l encoding -d 'Encoding [default: from the suffix: .json, .pbtxt or .textproto, else binary] [applies to: --emit-common-ir, --emit-onnx]' -r -f -a "binary\t'Protobuf\'s wire format'
text\t'Protobuf\'s text format'
json\t'Protobuf\'s JSON mapping'"
complete -c irc-translate -l diagnostics -d 'Format of diagnostics: text, or one JSON object per line' -r -f -a "text\t'Text with the source lines that they refer to'
json\t'One JSON object per line'"
complete -c irc-translate -l color -d 'When to use colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc-translate -l progress -d 'How to report progress; auto: a progress bar on a terminal, for long operations' -r -f -a "auto\t'A progress bar on a terminal, otherwise nothing'
none\t'No progress report'
plain\t'One line per step'"
complete -c irc-translate -l import-ark -d 'Read an ARK model file'
complete -c irc-translate -l import-common-ir -d 'Read a Common IR graph or library'
complete -c irc-translate -l import-onnx -d 'Read an ONNX model'
complete -c irc-translate -l import-gemini -d 'Read a Gemini schedule'
complete -c irc-translate -l import-npu -d 'Read an NPU program: a listing, a trace, or the binary form'
complete -c irc-translate -l emit-ark -d 'Write an ARK model file'
complete -c irc-translate -l emit-plan -d 'Write an ARK execution plan'
complete -c irc-translate -l emit-npu -d 'Write an NPU program: a listing, or the binary form if OUT ends in .npu'
complete -c irc-translate -l emit-gemini -d 'Write a Gemini schedule'
complete -c irc-translate -l emit-mlf -d 'Write a Model Library Format archive for this machine, as irc compile -o x.tar does'
complete -c irc-translate -l emit-common-ir -d 'Write a Common IR graph or library'
complete -c irc-translate -l emit-onnx -d 'Write an ONNX model'
complete -c irc-translate -l strict -d 'Treat unknown keys as errors [applies to: ARK models, Gemini schedules]'
complete -c irc-translate -l explain-schedule -d 'Explain each segment of the schedule: what was chosen, its bound, the runner-up [applies to: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR]'
complete -c irc-translate -l implicit-std -d 'Resolve undeclared operators in the standard library [applies to: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files]'
complete -c irc-translate -l ignore-control-inputs -d 'Ignore control inputs, so that they do not order nodes [applies to: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files]'
complete -c irc-translate -l assume-stated-shapes -d 'Take sizes computed at run time to be those that the model states; checked at run time [applies to: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files]'
complete -c irc-translate -l bundle -d 'Copy imported libraries into the module, so that it has no imports [applies to: Common IR and ONNX files; --emit-common-ir, --emit-onnx]'
complete -c irc-translate -l common-ir-fields -d 'Write features that only Common IR has to additional fields of the ONNX model [applies to: --emit-onnx]'
complete -c irc-translate -l inline -d 'Write external data into the ONNX model [applies to: --emit-onnx]'
complete -c irc-translate -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc-translate -s V -l version -d 'Print version'
