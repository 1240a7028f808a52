#compdef irc-translate

autoload -U is-at-least

_irc-translate() {
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
'-o+[File to write, compressed where it ends in .gz; - is standard output]:OUT:_files' \
'--output=[File to write, compressed where it ends in .gz; - is standard output]:OUT:_files' \
'--arch=[Device a plan is for\: ANY, CUDA, CUDA_80, ROCM_942, … \[default\: CUDA_80\]]:NAME:_default' \
'--processors=[Processors a plan may use \[default\: those of the device\]]:N:_default' \
'--planner=[Planner of a plan\: irc optimises, ark gives what ARK'\''s own planner gives]:NAME:((irc\:"The optimising one"
ark\:"ARK'\''s own, reproduced\: one op after another"))' \
'--config-rules=[Configs and ranges pinned for ops of a plan\: JSON, see docs/config-rules.md]:FILE:_files' \
'--frontend=[Frontend IR of a Gemini schedule]:F:_files' \
'--format=[Form of the file, where its content does not tell\: onnx, common-ir-text, …]:FORM:_default' \
'*--library-path=[Further folder in which imported libraries may lie; beside the model they always may]:DIR:_files' \
'--allow-fetch=[Fetch imported libraries from servers, once, into this folder]:CACHE:_files' \
'*--shape=[Shape of an input whose sizes the model leaves open\: data=1x3x224x224; once for each]:NAME=SHAPE:_default' \
'--functions=[What becomes of calls of the model'\''s functions]:HOW:((inline\:"The body in place of each call\: fuses with what is around it"
outline\:"One function for all calls, where the body does not depend on the values of arguments"))' \
'--form=[Form to write \[default\: by the suffix\: .json, .pbtxt and .textproto, else binary\]]:FORM:((binary\:"Protobuf'\''s wire format"
text\:"Protobuf'\''s text format"
json\:"Protobuf'\''s JSON mapping"))' \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'--import-ark[Read an ARK model file]' \
'--import-common-ir[Read a Common IR graph or library]' \
'--import-onnx[Read an ONNX model]' \
'--import-gemini[Read a Gemini schedule]' \
'--import-npu[Read an NPU program\: a listing, a trace, or the binary form]' \
'--emit-ark[Write an ARK model file]' \
'--emit-plan[Write an ARK execution plan]' \
'--emit-npu[Write an NPU program\: a listing, or the binary form where OUT ends in .npu]' \
'--emit-gemini[Write a Gemini schedule]' \
'--emit-mlf[Write a Model Library Format archive (not built yet)]' \
'--emit-common-ir[Write a Common IR graph or library]' \
'--emit-onnx[Write an ONNX model]' \
'--strict[Keys that the format does not know are errors]' \
'--implicit-std[Operators that nothing declares are those of the standard library]' \
'--compat[Rules that real files of Common IR'\''s time break are warnings]' \
'--ignore-control-inputs[Let nodes run before those that their control inputs name]' \
'--bundle[Put imported libraries into the module, which then imports nothing]' \
'--common-ir-fields[Write what only Common IR has in further fields of the ONNX model]' \
'--inline[Write elements that lie in other files into the ONNX model]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
'::input -- File to read; - is standard input:_default' \
&& ret=0
}

(( $+functions[_irc-translate_commands] )) ||
_irc-translate_commands() {
    local commands; commands=()
    _describe -t commands 'irc-translate commands' commands "$@"
}

if [ "$funcstack[1]" = "_irc-translate" ]; then
    _irc-translate "$@"
else
    compdef _irc-translate irc-translate
fi
