import { send } from '../../client.ts';
import { Failed, PageHead, Waiting } from '../../parts/basics.tsx';
import { bytes, count, duration } from '../../parts/format.ts';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { isBound, isOperator, may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { JobPage, Stats } from '../../types.ts';
import { Activity } from './activity.tsx';
import { Calls } from './calls.tsx';
import { Jobs } from './jobs.tsx';

/** Time between two reloads (ms). */
const LOOK_MS = 3_000;
/** Number of newest jobs that are requested. */
const NEWEST = 100;

/**
 * Shows the page of work and cost: the queue, its jobs, and the calls to providers. Keys that are bound to a user or to
 * tags see a notice instead.
 */
export function Work() {
  if (isBound())
    return (
      <div class="page">
        <PageHead title={texts.work.title} />
        <p class="notice">{texts.work.bound}</p>
      </div>
    );
  return (
    <div class="page">
      <PageHead title={texts.work.title} about={texts.work.about} />
      <Overview />
      {isOperator() && <Activity />}
      <Jobs />
      {may('admin') && <Calls />}
    </div>
  );
}

function Overview() {
  const { data, error, reload } = useLoad('overview', async (signal) => {
    const [jobs, stats] = await Promise.all([
      send<JobPage>('GET', '/jobs', { query: { l: NEWEST }, signal }),
      send<Stats>('GET', '/stats', { signal }),
    ]);
    return { jobs, stats };
  });
  useInterval(reload, LOOK_MS);
  if (error !== undefined && data === undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  const { counts, backlog } = data.jobs;
  const oldest = Math.max(0, ...backlog.map(({ oldest_age_ms: age }) => age));
  return (
    <>
      <div class="tiles">
        <Tile name={texts.work.waiting} value={count(counts.queued)} />
        <Tile name={texts.work.active} value={count(counts.active)} />
        <Tile name={texts.work.failed} value={count(counts.failed)} />
        <Tile name={texts.work.dead} value={count(counts.dead)} />
        <Tile name={texts.work.oldest} value={oldest === 0 ? '–' : duration(oldest)} />
        <Tile name={texts.work.rate} value={finishedLately(data.jobs)} />
        <Tile name={texts.work.memories} value={count(data.stats.memories)} />
        <Tile name={texts.work.vectors} value={count(data.stats.vectors)} />
        <Tile name={texts.work.database} value={bytes(data.stats.database_bytes)} />
      </div>
      <Backlog backlog={backlog.filter(({ queued, active, failed }) => queued + active + failed > 0)} />
    </>
  );
}

/** Returns how many of the newest 100 jobs ended within the last minute, followed by `+` if all of them did. */
function finishedLately({ items }: JobPage): string {
  const since = Date.now() - 60_000;
  const finished = items.filter(({ finished_at: at }) => at !== null && at > since).length;
  return `${count(finished)}${finished === NEWEST ? '+' : ''}`;
}

function Tile({ name, value }: { name: string; value: string }) {
  return (
    <div class="tile">
      <span>{name}</span>
      <b>{value}</b>
    </div>
  );
}

function Backlog({ backlog }: { backlog: JobPage['backlog'] }) {
  if (backlog.length === 0) return <p class="muted">{texts.work.noBacklog}</p>;
  return (
    <section class="stack-tight">
      <h2>{texts.work.backlog}</h2>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.work.backlog}>
        <table>
          <thead>
            <tr>
              <th>{texts.work.step}</th>
              <th class="right">{texts.work.queued}</th>
              <th class="right">{texts.work.active}</th>
              <th class="right">{texts.work.failed}</th>
              <th class="right">{texts.work.age}</th>
            </tr>
          </thead>
          <tbody class="number">
            {backlog.map((step) => (
              <tr key={step.step}>
                <td>{step.step}</td>
                <td class="right">{count(step.queued)}</td>
                <td class="right">{count(step.active)}</td>
                <td class="right">{count(step.failed)}</td>
                <td class="right">{duration(step.oldest_age_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
