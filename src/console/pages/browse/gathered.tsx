import { useState } from 'preact/hooks';
import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, MemoryLink, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { findMemory } from '../../parts/find-memory.ts';
import { say } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line, Words } from '../../parts/words.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { ConsolidationItem, ConsolidationList, MemoryItem } from '../../types.ts';
import { Proposals } from './proposals.tsx';
import { usePages } from './use-pages.ts';

/** Number of consolidations on a page. Their gathered memories are read with one request each. */
const PAGE = 10;

interface Gathered extends ConsolidationItem {
  /**
   * The memory that was made of several similar ones; undefined if the consolidation was undone or the memory was
   * erased.
   */
  readonly memory: MemoryItem | undefined;
}

/** What is to be undone: one consolidation, or all consolidations of its run. */
interface Undoing {
  readonly item: Gathered;
  readonly isRun: boolean;
}

/**
 * Shows the consolidations (memories that were gathered from several similar ones), and what a new run would gather.
 */
export function Gathered() {
  const { params } = address.value;
  const user = params.get('user_id') ?? undefined;
  const run = params.get('run') ?? undefined;
  const [undoing, setUndoing] = useState<Undoing>();
  const pages = usePages<Gathered, string>(JSON.stringify([user, run]), (before, signal) =>
    loadPage({ user_id: user, job_id: run, before, l: PAGE }, signal),
  );
  const isLooking = may('write') && params.get('look') === 'true';
  return (
    <section class="stack" aria-label={texts.browse.tabs.gathered}>
      <div class="between">
        <p class="muted">{texts.gathered.about}</p>
        {may('write') && !isLooking && (
          <button class="button button-first" onClick={() => changeParams({ look: 'true', run: '' })}>
            {texts.gathered.look}
          </button>
        )}
        {run !== undefined && (
          <button class="button" onClick={() => changeParams({ run: '' })}>
            {texts.gathered.allRuns}
          </button>
        )}
      </div>
      {isLooking && <Proposals user={user} onGathered={pages.reload} />}
      {pages.error !== undefined && <Failed error={pages.error} retry={pages.reload} />}
      {pages.items.length === 0 && pages.isLoading && <Waiting />}
      {pages.items.length === 0 && pages.isWhole && !isLooking && (
        <Empty title={texts.gathered.emptyTitle}>
          <p>{may('write') ? texts.gathered.empty : texts.gathered.emptyReader}</p>
        </Empty>
      )}
      {pages.items.map((item) => (
        <One key={item.id} item={item} onUndo={(isRun) => setUndoing({ item, isRun })} />
      ))}
      {pages.items.length > 0 && !pages.isWhole && (
        <div>
          <button class="button" onClick={pages.loadMore}>
            {texts.more}
          </button>
        </div>
      )}
      {undoing !== undefined && <Undo undoing={undoing} onClose={() => setUndoing(undefined)} onDone={pages.reload} />}
    </section>
  );
}

async function loadPage(query: Readonly<Record<string, string | number | undefined>>, signal: AbortSignal) {
  const { items, next } = await send<ConsolidationList>('GET', '/consolidations', { query, signal });
  const gathered = items.map(async (item): Promise<Gathered> => ({
    ...item,
    memory: item.memory_id === null ? undefined : await findMemory(item.memory_id, signal),
  }));
  return { items: await Promise.all(gathered), next };
}

function One({ item, onUndo }: { item: Gathered; onUndo: (isRun: boolean) => void }) {
  const { memory, user_id: user, source_ids: sources, method, created_at: at, job_id: run } = item;
  return (
    <article class="card stack-tight">
      <div class="between small muted">
        <span>
          {user} · <Time at={at} /> · {texts.gathered.methods[method]}
        </span>
        {memory !== undefined && <MemoryLink id={memory.id}>{texts.open}</MemoryLink>}
      </div>
      {memory === undefined ? <p class="muted">{texts.gathered.undone}</p> : <Words isCut>{memory.content}</Words>}
      <Sources ids={sources} />
      {may('write') && memory !== undefined && (
        <div class="row">
          <button class="button button-small" onClick={() => onUndo(false)}>
            {texts.gathered.undo}
          </button>
          <button class="button button-small" onClick={() => onUndo(true)}>
            {texts.gathered.undoRun}
          </button>
          <button class="button button-small button-plain" onClick={() => changeParams({ run, look: '' })}>
            {texts.gathered.onlyRun}
          </button>
        </div>
      )}
    </article>
  );
}

/** Shows the sources of a consolidation. They are read when the list is opened. */
function Sources({ ids }: { ids: readonly string[] }) {
  const [isOpen, setOpen] = useState(false);
  const { data } = useLoad(isOpen ? ids.join() : null, (signal) =>
    Promise.all(ids.map((id) => findMemory(id, signal))),
  );
  return (
    <details class="small" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{texts.gathered.sources(ids.length)}</summary>
      <ul class="stack-tight">
        {ids.map((id, at) => (
          <li key={id} class="line">
            {data !== undefined && data[at] === undefined ? (
              <span class="muted">{texts.gathered.sourceGone}</span>
            ) : (
              <MemoryLink id={id}>{data === undefined ? undefined : <Line>{data[at]!.content}</Line>}</MemoryLink>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}

interface UndoProps {
  readonly undoing: Undoing;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function Undo({ undoing: { item, isRun }, onClose, onDone }: UndoProps) {
  const undo = async () => {
    const { undone } = await send<{ undone: number }>('POST', `/consolidations/${isRun ? item.job_id : item.id}/undo`);
    say(texts.gathered.undoneNow(undone));
    onDone();
  };
  const title = isRun ? texts.gathered.undoRunTitle : texts.gathered.undoTitle;
  return (
    <Dialog title={title} action={texts.gathered.undo} isBad onDo={undo} onClose={onClose}>
      <p>{texts.gathered.undoAbout}</p>
    </Dialog>
  );
}
