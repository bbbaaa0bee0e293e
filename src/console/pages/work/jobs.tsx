import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Failed, MemoryLink, Time, Waiting } from '../../parts/basics.tsx';
import { dateTime, duration } from '../../parts/format.ts';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { JobItem, JobPage } from '../../types.ts';

const STATES = ['queued', 'active', 'failed', 'done', 'dead', 'cancelled'] as const;
const KINDS = ['memory', 'document', 'reembed', 'contradictions', 'reflection', 'consolidation'];
const PAGE = 25;
/** Time between two reloads (ms). */
const LOOK_MS = 3_000;

/**
 * Shows jobs with their steps, 25 at a time, optionally of one state or kind. Administrators can retry, cancel and
 * discard jobs.
 */
export function Jobs() {
  const { params } = address.value;
  const query = {
    l: PAGE,
    u: Number(params.get('u') ?? 0),
    state: params.get('state') ?? undefined,
    kind: params.get('kind') ?? undefined,
  };
  const { data, error, reload } = useLoad(JSON.stringify(query), (signal) =>
    send<JobPage>('GET', '/jobs', { query, signal }),
  );
  useInterval(reload, LOOK_MS);
  return (
    <section class="stack">
      <h2>{texts.work.jobs}</h2>
      <div class="fields">
        <Choice
          label={texts.work.state}
          value={params.get('state') ?? ''}
          onChange={(state) => changeParams({ state, u: '' })}
          options={[['', texts.work.all], ...STATES.map((state) => [state, texts.work.states[state]] as const)]}
        />
        <Choice
          label={texts.work.kind}
          value={params.get('kind') ?? ''}
          onChange={(kind) => changeParams({ kind, u: '' })}
          options={[['', texts.work.all], ...KINDS]}
        />
      </div>
      {error !== undefined && data === undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting />}
      {data?.items.length === 0 && <p class="muted">{texts.work.noJobs}</p>}
      {data !== undefined && data.items.length > 0 && (
        <>
          <Table jobs={data.items} onChange={reload} />
          {query.u + PAGE < data.total && (
            <div>
              <button class="button" onClick={() => changeParams({ u: query.u + PAGE })}>
                {texts.more}
              </button>
            </div>
          )}
        </>
      )}
    </section>
  );
}

function Table({ jobs, onChange }: { jobs: readonly JobItem[]; onChange: () => void }) {
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.work.jobs}>
      <table>
        <thead>
          <tr>
            <th>{texts.work.kind}</th>
            <th>{texts.work.state}</th>
            <th class="right">{texts.work.attempts}</th>
            <th>{texts.work.when}</th>
            <th>{texts.work.timeline}</th>
            <th>
              <span class="hidden">{texts.work.retry}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <td class="nowrap">
                {job.kind} <Subject job={job} />
              </td>
              <td>
                <span class={`chip ${TONES[job.state] ?? ''}`}>{texts.work.states[job.state]}</span>
                {job.error !== null && <div>{job.error.message}</div>}
              </td>
              <td class="right number">{job.attempts + job.crashes}</td>
              <td>
                <Time at={job.created_at} />
              </td>
              <td>
                <Steps job={job} />
              </td>
              <td>
                <JobActions job={job} onChange={onChange} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const TONES: Readonly<Record<string, string>> = {
  done: 'chip-good',
  dead: 'chip-bad',
  failed: 'chip-warn',
  cancelled: 'chip-warn',
};

function Subject({ job: { memory_id: memory, document_id: document } }: { job: JobItem }) {
  if (memory !== null) return <MemoryLink id={memory} />;
  return document === null ? null : <a href={hrefOf(['document', document])}>{texts.documents.name}</a>;
}

/** Shows the events of a job, each with the time since the previous event. */
function Steps({ job: { timeline } }: { job: JobItem }) {
  return (
    <span class="row number">
      {timeline.map(({ event, at }, index) => (
        <span key={index} title={dateTime(at)}>
          {event}
          {index > 0 && <span class="muted"> +{duration(at - timeline[index - 1]!.at)}</span>}
        </span>
      ))}
    </span>
  );
}

function JobActions({ job, onChange }: { job: JobItem; onChange: () => void }) {
  if (!may('admin')) return null;
  const act = (method: string, path: string, message: string) => () =>
    void send(method, `/jobs/${job.id}${path}`).then(() => {
      say(message);
      onChange();
    }, sayRefusal);
  const isOver = job.state === 'dead' || job.state === 'cancelled';
  const isUnderWay = job.state === 'queued' || job.state === 'active' || job.state === 'failed';
  return (
    <div class="row">
      {(isOver || job.state === 'failed') && (
        <button class="button button-small" onClick={act('POST', '/retry', texts.work.retried)}>
          {texts.work.retry}
        </button>
      )}
      {isUnderWay && (
        <button class="button button-small" onClick={act('POST', '/cancel', texts.work.cancelled)}>
          {texts.work.cancel}
        </button>
      )}
      {isOver && (
        <button class="button button-small" onClick={act('DELETE', '', texts.work.discarded)}>
          {texts.work.discard}
        </button>
      )}
    </div>
  );
}
