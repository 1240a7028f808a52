complete -c irc-translate -s o -l output -d 'File to write, compressed where it ends in .gz; - is standard output' -r -F
complete -c irc-translate -l arch -d 'Device a plan is for: ANY, CUDA, CUDA_80, ROCM_942, … [default: CUDA_80]' -r
complete -c irc-translate -l processors -d 'Processors a plan may use [default: those of the device]' -r
complete -c irc-translate -l planner -d 'Planner of a plan: irc optimises, ark gives what ARK\'s own planner gives' -r -f -a "irc\t'The optimising one'
ark\t'ARK\'s own, reproduced: one op after another'"
complete -c irc-translate -l config-rules -d 'Configs and ranges pinned for ops of a plan: JSON, see docs/config-rules.md' -r -F
complete -c irc-translate -l frontend -d 'Frontend IR of a Gemini schedule' -r -F
complete -c irc-translate -l format -d 'Form of the file, where its content does not tell: onnx, common-ir-text, …' -r
complete -c irc-translate -l library-path -d 'Further folder in which imported libraries may lie; beside the model they always may' -r -F
complete -c irc-translate -l allow-fetch -d 'Fetch imported libraries from servers, once, into this folder' -r -F
complete -c irc-translate -l shape -d 'Shape of an input whose sizes the model leaves open: data=1x3x224x224; once for each' -r
complete -c irc-translate -l functions -d 'What becomes of calls of the model\'s functions' -r -f -a "inline\t'The body in place of each call: fuses with what is around it'
outline\t'One function for all calls, where the body does not depend on the values of arguments'"
complete -c irc-translate -l form -d 'Form to write [default: by the suffix: .json, .pbtxt and .textproto, else binary]' -r -f -a "binary\t'Protobuf\'s wire format'
text\t'Protobuf\'s text format'
json\t'Protobuf\'s JSON mapping'"
complete -c irc-translate -l diagnostics -d 'How findings are written: text for people, or one JSON object a line' -r -f -a "text\t'With the source lines they point at'
json\t'One JSON object a line'"
complete -c irc-translate -l color -d 'Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c irc-translate -l progress -d 'What tells of progress; auto: a bar on a terminal, when it takes long' -r -f -a "auto\t'A bar on a terminal, nothing otherwise'
none\t'Nothing'
plain\t'A line for each step'"
complete -c irc-translate -l import-ark -d 'Read an ARK model file'
complete -c irc-translate -l import-common-ir -d 'Read a Common IR graph or library'
complete -c irc-translate -l import-onnx -d 'Read an ONNX model'
complete -c irc-translate -l import-gemini -d 'Read a Gemini schedule'
complete -c irc-translate -l import-npu -d 'Read an NPU program: a listing, a trace, or the binary form'
complete -c irc-translate -l emit-ark -d 'Write an ARK model file'
complete -c irc-translate -l emit-plan -d 'Write an ARK execution plan'
complete -c irc-translate -l emit-npu -d 'Write an NPU program: a listing, or the binary form where OUT ends in .npu'
complete -c irc-translate -l emit-gemini -d 'Write a Gemini schedule'
complete -c irc-translate -l emit-mlf -d 'Write a Model Library Format archive (not built yet)'
complete -c irc-translate -l emit-common-ir -d 'Write a Common IR graph or library'
complete -c irc-translate -l emit-onnx -d 'Write an ONNX model'
complete -c irc-translate -l strict -d 'Keys that the format does not know are errors'
complete -c irc-translate -l implicit-std -d 'Operators that nothing declares are those of the standard library'
complete -c irc-translate -l compat -d 'Rules that real files of Common IR\'s time break are warnings'
complete -c irc-translate -l ignore-control-inputs -d 'Let nodes run before those that their control inputs name'
complete -c irc-translate -l bundle -d 'Put imported libraries into the module, which then imports nothing'
complete -c irc-translate -l common-ir-fields -d 'Write what only Common IR has in further fields of the ONNX model'
complete -c irc-translate -l inline -d 'Write elements that lie in other files into the ONNX model'
complete -c irc-translate -s h -l help -d 'Print help (see more with \'--help\')'
complete -c irc-translate -s V -l version -d 'Print version'
