import { useState } from 'preact/hooks';
import { go, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, PageHead, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { count, dateTime, duration, fixed } from '../../parts/format.ts';
import { Plot } from '../../parts/plot.tsx';
import { Table } from '../../parts/table.tsx';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { EvalOutcomes, EvalRun, EvalSet } from '../../types.ts';
import { EditEval, shareOf } from './edit-eval.tsx';

/** Number of latest runs that are shown. */
const RUNS = 60;

/**
 * Shows one evaluation set: its measures over time, its runs, and its questions with the results of a run that was just
 * made.
 */
export function OneEval({ name }: { name: string }) {
  const path = `/evals/${encodeURIComponent(name)}`;
  const [outcomes, setOutcomes] = useState<EvalOutcomes>();
  const { data, error, reload } = useLoad(name, async (signal) => {
    const [set, runs] = await Promise.all([
      send<EvalSet>('GET', path, { signal }),
      send<{ items: readonly EvalRun[] }>('GET', `${path}/runs`, { query: { limit: RUNS }, signal }),
    ]);
    return { set, runs: runs.items };
  });
  if (error?.status === 404) return <Gone />;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  return (
    <div class="page">
      <PageHead title={name}>
        <Actions
          set={data.set}
          path={path}
          onRun={(found) => {
            setOutcomes(found);
            reload();
          }}
          onChange={() => {
            // They are about the questions as they were.
            setOutcomes(undefined);
            reload();
          }}
        />
      </PageHead>
      {data.runs.length === 0 ? <p class="notice">{texts.evals.noRuns}</p> : <Runs runs={data.runs} />}
      <Questions set={data.set} outcomes={outcomes} />
    </div>
  );
}

function Gone() {
  return (
    <Empty title={texts.evals.gone}>
      <a class="button" href={hrefOf('evals')}>
        {texts.evals.all}
      </a>
    </Empty>
  );
}

interface ActionsProps {
  readonly set: EvalSet;
  readonly path: string;
  readonly onRun: (outcomes: EvalOutcomes) => void;
  readonly onChange: () => void;
}

function Actions({ set, path, onRun, onChange }: ActionsProps) {
  const [isRunning, setRunning] = useState(false);
  const [asking, setAsking] = useState<'change' | 'remove'>();
  const run = async () => {
    setRunning(true);
    try {
      const outcomes = await send<EvalOutcomes>('POST', `${path}/run`);
      say(texts.evals.ran(outcomes.items.length));
      onRun(outcomes);
    } catch (error) {
      sayRefusal(error);
    } finally {
      setRunning(false);
    }
  };
  const remove = async () => {
    await send('DELETE', path);
    say(texts.evals.removed);
    go(hrefOf('evals'));
  };
  return (
    <>
      <button class="button button-first" disabled={isRunning} onClick={() => void run()}>
        {isRunning ? texts.evals.running : texts.evals.run}
      </button>
      <button class="button" onClick={() => setAsking('change')}>
        {texts.evals.change}
      </button>
      <button class="button button-bad" onClick={() => setAsking('remove')}>
        {texts.evals.remove}
      </button>
      {asking === 'change' && (
        <EditEval text={JSON.stringify(set, null, 2)} onClose={() => setAsking(undefined)} onDone={onChange} />
      )}
      {asking === 'remove' && (
        <Dialog
          title={texts.evals.removeTitle(set.name)}
          action={texts.evals.remove}
          isBad
          onDo={remove}
          onClose={() => setAsking(undefined)}
        >
          {null}
        </Dialog>
      )}
    </>
  );
}

function Runs({ runs }: { runs: readonly EvalRun[] }) {
  const points = (value: (run: EvalRun) => number | null) =>
    runs.toReversed().map((run, at) => [at, value(run)] as const);
  const writeX = (at: number) => (runs.at(-1 - at) === undefined ? '' : dateTime(runs.at(-1 - at)!.at));
  return (
    <section class="stack">
      <h2>{texts.evals.overTime}</h2>
      <div class="card-flat halves">
        <Plot
          title={texts.evals.share}
          most={1}
          write={(value) => fixed(value)}
          writeX={writeX}
          lines={[
            { name: texts.evals.found, points: points((run) => run.recall) },
            { name: texts.evals.precise, points: points((run) => run.precision) },
            { name: texts.evals.empty_, points: points((run) => run.rightly_empty) },
          ]}
        />
        <Plot
          title={texts.evals.time}
          write={duration}
          writeX={writeX}
          lines={[{ name: texts.evals.p95, points: points((run) => run.p95_ms) }]}
        />
      </div>
      <h2>{texts.evals.runs}</h2>
      <Table label={texts.evals.runs} columns={texts.evals.runColumns}>
        {runs.map((run) => (
          <tr key={run.at}>
            <td>
              <Time at={run.at} />
            </td>
            <td>{run.changed.join(', ') || '–'}</td>
            <td class="right">{shareOf(run.recall)}</td>
            <td class="right">{shareOf(run.precision)}</td>
            <td class="right">{shareOf(run.rightly_empty)}</td>
            <td class="right">{count(run.forbidden)}</td>
            <td class="right">{duration(run.p95_ms)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Questions({ set, outcomes }: { set: EvalSet; outcomes: EvalOutcomes | undefined }) {
  return (
    <section class="stack-tight">
      <h2>{texts.evals.questions}</h2>
      {outcomes === undefined && <p class="small muted">{texts.evals.runToSee}</p>}
      <Table
        label={texts.evals.questions}
        columns={outcomes === undefined ? texts.evals.questionColumns.slice(0, -1) : texts.evals.questionColumns}
      >
        {set.items.map((item, place) => (
          <tr key={place}>
            <td>
              <a href={hrefOf('ask', { query: item.query, user_id: item.user_id, k: item.k })}>{item.query}</a>
            </td>
            <td>{item.user_id}</td>
            <td>{item.expected.join(', ') || <span class="muted">{texts.evals.nothing}</span>}</td>
            {outcomes !== undefined && (
              <td>
                <Outcome item={outcomes.items.find((outcome) => outcome.place === place)} expected={item.expected} />
              </td>
            )}
          </tr>
        ))}
      </Table>
    </section>
  );
}

interface OutcomeProps {
  readonly item: EvalOutcomes['items'][number] | undefined;
  readonly expected: readonly string[];
}

function Outcome({ item, expected }: OutcomeProps) {
  if (item === undefined) return <span class="muted">–</span>;
  const isFull = expected.length === 0 && item.hits.length > 0;
  const problems = [
    item.missing.length > 0 && texts.evals.missing(item.missing.join(', ')),
    item.forbidden.length > 0 && texts.evals.forbidden(item.forbidden.join(', ')),
    isFull && texts.evals.forbidden(count(item.hits.length)),
  ].filter((problem) => problem !== false);
  if (problems.length === 0) return <span class="chip chip-good">{texts.evals.right}</span>;
  return <span class="chip chip-bad">{problems.join(', ')}</span>;
}
