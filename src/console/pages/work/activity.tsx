import { send } from '../../client.ts';
import { Failed, Waiting } from '../../parts/basics.tsx';
import { count, duration } from '../../parts/format.ts';
import { Plot } from '../../parts/plot.tsx';
import { Table } from '../../parts/table.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { Activity as ActivityReply } from '../../types.ts';

/** Time between two reloads (ms). The service sums up the figures for each minute. */
const LOOK_MS = 15_000;
const MINUTE_MS = 60_000;
const KINDS = ['add', 'query', 'documents', 'read', 'write'] as const;
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' });

type Minute = ActivityReply['minutes'][number];

/** Shows requests and latency for each minute of the last hour, and the state of the providers. For operators only. */
export function Activity() {
  const { data, error, reload } = useLoad('activity', (signal) =>
    send<ActivityReply>('GET', '/admin/activity', { signal }),
  );
  useInterval(reload, LOOK_MS);
  if (error !== undefined && data === undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <div class="stack-tight">
        <h2>{texts.work.activity}</h2>
        <p class="muted">{texts.work.activityAbout}</p>
      </div>
      {data.minutes.length === 0 ? <p class="muted">{texts.work.early}</p> : <Plots minutes={data.minutes} />}
      <h2>{texts.work.providers}</h2>
      <Providers providers={data.providers} />
    </section>
  );
}

function Plots({ minutes }: { minutes: readonly Minute[] }) {
  const points = (value: (minute: Minute) => number | null) =>
    minutes.map((minute) => [minute.at, value(minute)] as const);
  // The latest minute is not over yet, so its numbers are scaled up to a whole minute.
  const aMinute = (value: (minute: Minute) => number) =>
    points((minute) => (value(minute) * MINUTE_MS) / Math.max(minute.ms, MINUTE_MS / 4));
  const writeX = (at: number) => CLOCK.format(at);
  const whole = (value: number) => count(Math.round(value * 10) / 10);
  return (
    <div class="card-flat halves">
      <Plot
        title={texts.work.throughput}
        write={whole}
        writeX={writeX}
        lines={KINDS.map((kind) => ({
          name: texts.work.kinds[kind],
          points: aMinute(({ requests }) => requests[kind].count),
        }))}
      />
      <Plot
        title={texts.work.latency}
        write={duration}
        writeX={writeX}
        lines={[
          { name: texts.work.p50, points: points((minute) => minute.query_p50_ms) },
          { name: texts.work.p95, points: points((minute) => minute.query_p95_ms) },
        ]}
      />
      <Plot
        title={texts.work.jobsDone}
        write={whole}
        writeX={writeX}
        lines={[
          { name: texts.work.finished, points: aMinute((minute) => minute.jobs_done) },
          { name: texts.work.gaveUp, points: aMinute((minute) => minute.jobs_dead) },
        ]}
      />
    </div>
  );
}

function Providers({ providers }: { providers: ActivityReply['providers'] }) {
  if (providers.length === 0) return <p class="muted">{texts.work.noProviders}</p>;
  const limit = (value: number | null) => (value === null || value === 0 ? texts.work.noLimit : count(value));
  return (
    <Table label={texts.work.providers} columns={texts.work.providerColumns}>
      {providers.map(({ service, sector, breaker_open: isOpen, held_back: heldBack, ...limits }) => (
        <tr key={`${service} ${sector}`}>
          <td>{[texts.work.services[service], sector ?? ''].filter(Boolean).join(', ')}</td>
          <td>
            <span class={`chip ${isOpen ? 'chip-bad' : 'chip-good'}`}>
              {isOpen ? texts.work.opened : texts.work.closed}
            </span>
          </td>
          <td class="right">{limit(limits.requests_per_minute)}</td>
          <td class="right">{limit(limits.tokens_per_minute)}</td>
          <td>
            {Object.entries(heldBack)
              .filter(([, calls]) => calls > 0)
              .map(([reason, calls]) => `${texts.work.reasons[reason] ?? reason} ${count(calls)}`)
              .join(', ') || '–'}
          </td>
        </tr>
      ))}
    </Table>
  );
}
