
# Which run this is: one line of the list for each task of the arrays. The argument says where this array's part begins.
run=$(sed -n "$(($1 + SLURM_ARRAY_TASK_ID + 1))p" "$runs")
if [ -z "$run" ]; then
    echo "no run for task $SLURM_ARRAY_TASK_ID of the array in $runs" >&2
    exit 3
fi
job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
say() { echo "$(date '+%F %T') job $job, start $((${SLURM_RESTART_COUNT:-0} + 1)): $*"; }
say "$run on $(hostname)"

pid=
reason=
signalled=

# The time limit is near, and Slurm told this shell only: album is asked to save its state and to stop.
limit() {
    signalled=yes
    if [ -z "$reason" ]; then
        reason=limit
        [ -n "$pid" ] && kill -TERM "$pid"
    fi
}

# scancel, preemption, a requeue by others, or the limit itself. Slurm sends this to all processes of a job: album has it
# already and is saving its state, and a second signal would end it at once. Whether the job returns is Slurm's decision.
ended() {
    signalled=yes
    reason=ended
}

trap limit USR1
trap ended TERM

"${album[@]}" --job "$jobs/$run.json" >>"$logs/$run.log" 2>&1 &
pid=$!
# The signal came before there was a process to tell.
[ "$reason" = limit ] && kill -TERM "$pid"

# A signal interrupts `wait`, whose code is then not album's.
while :; do
    signalled=
    wait "$pid"
    code=$?
    [ -z "$signalled" ] && break
done

if [ "$code" -eq 75 ] && [ "$reason" = limit ]; then
    if scontrol requeue "$job"; then
        say "saved before the time limit, back in the queue"
    else
        say "saved before the time limit, but Slurm does not take it back; submit again to go on" >&2
    fi
else
    say "album ended with code $code"
fi

# A run that fails notes why; one that was killed, or that could not be started, cannot.
why=
if [ "$code" -eq 143 ] && [ "$reason" = limit ]; then
    # It did not listen yet. In the queue again, it would come as far and no further.
    why="the time limit came before training began; --slurm-time has to be longer"
elif [ "$code" -ge 126 ] && [ -z "$reason" ]; then
    why="could not be started (exit code $code)"
    [ "$code" -gt 128 ] && why="killed by signal $((code - 128)), perhaps out of memory"
fi
if [ -n "$why" ]; then
    echo "{\"code\": null, \"message\": \"$why; job $job on $(hostname)\"}" >"$failed/.$run.$job.tmp" &&
        mv "$failed/.$run.$job.tmp" "$failed/$run.json"
fi
exit "$code"
