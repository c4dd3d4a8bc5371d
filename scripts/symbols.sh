#!/usr/bin/env bash
# Rules 7 and 33 on the archives of a release build: scripts/symbols.sh [build folder, default build].
# Exported names start with gb_; no object but the logger has mutable data (constant tables with
# relocations lie in .data.rel.ro and are fine).
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
libraries=()
for library in "$build"/libgb_*.a; do
    case ${library##*/} in
        libgb_test_support.a | libgb_contract.a | libgb_sim.a | libgb_bench.a) ;;
        *) [[ ! -e $library ]] || libraries+=("$library") ;;
    esac
done
[[ ${#libraries[@]} -gt 0 ]] || { echo "symbols: no libgb_*.a in $build" >&2; exit 1; }

names=$(nm -A -g --defined-only "${libraries[@]}" 2>/dev/null |
    awk 'NF >= 3 && $NF !~ /^gb_/ { print $1 " exports " $NF ": make it static or name it gb_..." }')
data=$(size -A "${libraries[@]}" | awk '
    / +\(ex / { object = $1 }
    /^\.(data|bss|tdata|tbss)/ && $1 !~ /^\.data\.rel\.ro/ && $2 > 0 && object != "log.c.o" {
        print object ": " $2 " bytes in " $1 ": no mutable globals or file statics; pass a context"
    }')
[[ -z $names ]] || printf '%s\n' "$names"
[[ -z $data ]] || printf '%s\n' "$data"
[[ -z $names$data ]] || exit 1
echo "symbols: ${#libraries[@]} archives, all names gb_*, no mutable globals but the logger's"
