import { send } from '../../client.ts';
import { Failed, Waiting } from '../../parts/basics.tsx';
import { count, duration } from '../../parts/format.ts';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { ReembedItem } from '../../types.ts';

/** Time between two reloads while a change of the model is running (ms). */
const LOOK_MS = 2_000;

/**
 * Shows which embedding model is live and which one the settings name, the progress of a change between them, and the
 * buttons that start, pause and cancel a change.
 */
export function Model() {
  const { data, error, reload } = useLoad('reembed', (signal) =>
    send<ReembedItem>('GET', '/admin/reembed', { signal }),
  );
  useInterval(() => data?.state === 'running' && reload(), LOOK_MS);
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  const { state, phase, live, configured, done, total, failed, remaining_ms: remaining, estimate } = data;
  const nameOf = (model: ReembedItem['live']) =>
    model === null ? texts.work.none : `${model.provider} ${model.model}, ${model.dimensions}`;
  const facts: [string, string][] = [
    [texts.admin.live, nameOf(live)],
    [texts.admin.configured, nameOf(configured)],
    [texts.admin.state, [state, phase].filter(Boolean).join(', ')],
    [texts.admin.done, `${count(done)} / ${count(total)}`],
    [texts.admin.failed, count(failed)],
    [texts.admin.remaining, remaining === null ? '–' : duration(remaining)],
    [texts.admin.estimate, estimate === null ? '–' : texts.admin.estimated(estimate.memories, estimate.tokens)],
  ];
  const act = (method: string, path: string) => () =>
    void send(method, path, method === 'POST' && path === '/admin/reembed' ? { body: {} } : {}).then(() => {
      say(texts.admin.changed);
      reload();
    }, sayRefusal);
  return (
    <section class="card-flat stack">
      <p class="muted">{texts.admin.modelAbout}</p>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd class="number">{value}</dd>
          </>
        ))}
      </dl>
      {data.error !== null && <p class="notice notice-bad">{data.error}</p>}
      {state === 'running' && (
        <progress aria-label={texts.admin.done} max={Math.max(1, total)} value={done}>
          {done}
        </progress>
      )}
      <div class="row">
        {(state === 'needed' || state === 'paused' || state === 'failed') && (
          <button class="button button-first" onClick={act('POST', '/admin/reembed')}>
            {texts.admin.start}
          </button>
        )}
        {state === 'running' && (
          <button class="button" onClick={act('POST', '/admin/reembed/pause')}>
            {texts.admin.pause}
          </button>
        )}
        {(state === 'running' || state === 'paused') && (
          <button class="button button-bad" onClick={act('DELETE', '/admin/reembed')}>
            {texts.cancel}
          </button>
        )}
      </div>
    </section>
  );
}
