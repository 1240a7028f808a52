# Breaks a valid model, checks it, and prints what `irc check` says and its exit code.
# usage: broken.sh IRC FOLDER MODEL EDIT
#   MODEL  small, exchange or lookup
#   EDIT   a sed program, or '| COMMAND' to filter the text by
inputs=$(cd "$(dirname "$0")" && pwd)
case $3 in
small) model=$inputs/../../../../formats/ark/tests/data/small.model.json ;;
*) model=$inputs/$3.model.json ;;
esac
mkdir -p "$2" && cd "$2" || exit
case $4 in
'|'*) sh -c "${4#|}" <"$model" >broken.json ;;
*) sed -E "$4" "$model" >broken.json ;;
esac
if cmp -s "$model" broken.json; then echo 'the edit changes nothing'; fi
"$1" check broken.json 2>&1
echo "exit $?"
