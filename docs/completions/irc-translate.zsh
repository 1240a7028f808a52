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
'-o+[File to write; - is standard output]:OUT:_files' \
'--output=[File to write; - is standard output]:OUT:_files' \
'--arch=[Device a plan is for\: ANY, CUDA, CUDA_80, ROCM_942, …]:NAME:_default' \
'--processors=[Processors a plan may use \[default\: those of the device\]]:N:_default' \
'--planner=[Planner of a plan\: irc optimises, ark gives what ARK'\''s own planner gives]:NAME:((irc\:"The optimising one"
ark\:"ARK'\''s own, reproduced\: one op after another"))' \
'--config-rules=[Configs and ranges pinned for ops of a plan\: JSON, see docs/config-rules.md]:FILE:_files' \
'--frontend=[Frontend IR of a Gemini schedule]:F:_files' \
'--diagnostics=[How findings are written\: text for people, or one JSON object a line]:FORMAT:((text\:"With the source lines they point at"
json\:"One JSON object a line"))' \
'--color=[Whether messages are coloured; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[What tells of progress; auto\: a bar on a terminal, when it takes long]:HOW:((auto\:"A bar on a terminal, nothing otherwise"
none\:"Nothing"
plain\:"A line for each step"))' \
'--import-ark[Read an ARK model file]' \
'--import-common-ir[Read a Common IR graph or library (not built yet)]' \
'--import-onnx[Read an ONNX model (not built yet)]' \
'--import-gemini[Read a Gemini schedule (not built yet)]' \
'--emit-ark[Write an ARK model file]' \
'--emit-plan[Write an ARK execution plan]' \
'--emit-npu[Write an NPU program (not built yet)]' \
'--emit-gemini[Write a Gemini schedule (not built yet)]' \
'--emit-mlf[Write a Model Library Format archive (not built yet)]' \
'--emit-common-ir[Write a Common IR graph (not built yet)]' \
'--emit-onnx[Write an ONNX model (not built yet)]' \
'--strict[Keys that the format does not know are errors]' \
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
