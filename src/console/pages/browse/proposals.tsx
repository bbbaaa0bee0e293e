import { useState } from 'preact/hooks';
import { changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Check, Empty, Failed, Waiting } from '../../parts/basics.tsx';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Words } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { ConsolidationEnded, ConsolidationProposals } from '../../types.ts';

/** Longest wait for a run (ms). A longer run continues, and is listed under “Work and cost”. */
const WAIT_MS = 30_000;

/**
 * Shows which memories a run of consolidation would gather into one, before anything changes, and a button that starts
 * the run.
 */
export function Proposals({ user, onGathered }: { user: string | undefined; onGathered: () => void }) {
  const [again, setAgain] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const scope = { ...(user === undefined ? {} : { user_id: user }), again };
  const { data, error, reload } = useLoad(JSON.stringify(['proposals', scope]), (signal) =>
    send<ConsolidationProposals>('POST', '/consolidations', { body: { ...scope, dry_run: true }, signal }),
  );
  const gather = () => {
    setBusy(true);
    void send<ConsolidationEnded>('POST', '/consolidations', { query: { wait: WAIT_MS }, body: scope }).then(
      ({ state }) => {
        say(state === 'done' ? texts.gathered.done : texts.gathered.goesOn(state));
        changeParams({ look: '' });
        onGathered();
      },
      (refused: unknown) => {
        sayRefusal(refused);
        setBusy(false);
      },
    );
  };
  return (
    <section class="card-flat stack" aria-label={texts.gathered.proposed} aria-busy={isBusy}>
      <div class="between">
        <h2>{texts.gathered.proposed}</h2>
        <Check label={texts.gathered.again} checked={again} onChange={setAgain} />
      </div>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting lines={1} />}
      {data?.proposals.length === 0 && (
        <Empty title={texts.gathered.none}>
          <p>{texts.gathered.noneAbout}</p>
        </Empty>
      )}
      <ul class="stack">
        {data?.proposals.map(({ user_id: owner, content, source_ids: sources }) => (
          <li key={sources.join()} class="stack-tight">
            <span class="small muted">
              {owner} · {texts.gathered.from(sources.length)}
            </span>
            <Words isCut>{content}</Words>
          </li>
        ))}
      </ul>
      {data?.truncated === true && <p class="notice">{texts.gathered.cut}</p>}
      <div class="row">
        {data !== undefined && data.proposals.length > 0 && (
          <button class="button button-first" onClick={gather} disabled={isBusy}>
            {isBusy ? texts.gathered.gathering : texts.gathered.gather}
          </button>
        )}
        <button class="button" onClick={() => changeParams({ look: '' })}>
          {texts.cancel}
        </button>
      </div>
    </section>
  );
}
