import { send } from '../../client.ts';
import { Failed, Time, Waiting } from '../../parts/basics.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { History, MemoryItem, RevisionItem } from '../../types.ts';
import { differences } from './differences.ts';

/** Shows the latest 100 changes of a memory, the latest first, each with its differences. */
export function HistoryView({ memory }: { memory: MemoryItem }) {
  const { data, error, reload } = useLoad(`${memory.id} ${memory.version}`, (signal) =>
    send<History>('GET', `/memory/${memory.id}/history`, { query: { l: 100 }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  const steps = withNext(data.items, memory);
  return (
    <section class="card-flat stack" aria-label={texts.memory.tabs.history}>
      {steps.length === 0 && <p class="muted">{texts.memory.noHistory}</p>}
      <ol class="history">
        {steps.map(({ revision, changes }) => (
          <li key={revision.version} class="stack-tight">
            <div class="row">
              <b>{texts.memory.changed(revision.version)}</b>
              <span class="small muted">
                <Time at={revision.replaced_at} />
                {revision.written_by !== null && ` ${texts.memory.by} ${revision.written_by}`}
              </span>
            </div>
            {changes.map(({ field, from, to }) => (
              <Difference key={field} field={field} from={from} to={to} />
            ))}
          </li>
        ))}
        <li>
          <b>{texts.memory.first}</b>{' '}
          <span class="small muted">
            <Time at={memory.created_at} />
          </span>
        </li>
      </ol>
    </section>
  );
}

interface Change {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * Adds to each revision, which has the former values of changed fields, the values that replaced them: from the next
 * later revision with the same field, or else from the memory as it is now. Revisions are ordered latest first.
 */
function withNext(revisions: readonly RevisionItem[], memory: MemoryItem) {
  const values: Record<string, unknown> = { ...memory };
  return revisions.map((revision) => {
    const changes: Change[] = Object.entries(revision.replaced).map(([field, from]) => ({
      field,
      from,
      to: values[field],
    }));
    Object.assign(values, revision.replaced);
    return { revision, changes };
  });
}

function Difference({ field, from, to }: Change) {
  return (
    <div>
      <span class="small muted">{field.replaceAll('_', ' ')}</span>
      <p class="text">
        {differences(textOf(from), textOf(to)).map(({ kind, text }, at) =>
          kind === 'same' ? text : kind === 'gone' ? <del key={at}>{text}</del> : <ins key={at}>{text}</ins>,
        )}
      </p>
    </div>
  );
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null || value === undefined ? '–' : JSON.stringify(value);
}
