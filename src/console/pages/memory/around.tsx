import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Check, Failed, MemoryLink, SectorName, Time, Waiting } from '../../parts/basics.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { MemoryItem, Timeline } from '../../types.ts';

/** Shows up to eight memories before and eight after a memory in time, of its user or only of its session. */
export function Around({ memory }: { memory: MemoryItem }) {
  const isSession = address.value.params.get('only') === 'session';
  const setSession = (next: boolean) => changeParams({ only: next ? 'session' : '' }, { replace: true });
  const { data, error, reload } = useLoad(`${memory.id} ${isSession}`, (signal) =>
    send<Timeline>('GET', `/memory/${memory.id}/timeline`, {
      query: { before: 8, after: 8, session: String(isSession) },
      signal,
    }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  const isAlone = data.before.length + data.after.length === 0;
  return (
    <section class="card-flat stack" aria-label={texts.memory.tabs.time}>
      {memory.session_id !== '' && <Check label={texts.memory.sessionOnly} checked={isSession} onChange={setSession} />}
      {isAlone && <p class="muted">{texts.memory.alone}</p>}
      <ol class="history">
        {[...data.before, data.anchor, ...data.after].map((item) => (
          <li key={item.id} aria-current={item.id === memory.id ? 'true' : undefined}>
            <div class="row small muted">
              <Time at={item.event_time} />
              <SectorName sector={item.primary_sector} />
            </div>
            <div class="line">
              {item.id === memory.id ? (
                <b>
                  <Line>{item.gist}</Line>
                </b>
              ) : (
                <MemoryLink id={item.id}>
                  <Line>{item.gist}</Line>
                </MemoryLink>
              )}
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
