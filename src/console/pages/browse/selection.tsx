import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { Field } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { count } from '../../parts/format.ts';
import { say } from '../../parts/toast.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { Deleted, MemoryItem } from '../../types.ts';
import { listOf } from '../memory/change-dialogs.tsx';

/** Greatest number of requests for a selection that are in flight at once. */
const AT_ONCE = 4;

interface SelectionProps {
  readonly items: readonly MemoryItem[];
  readonly selected: ReadonlySet<string>;
  readonly isWhole: boolean;
  readonly onSelect: (ids: ReadonlySet<string>) => void;
  readonly onDone: () => void;
  /**
   * Called after every change of the selected memories, with the receipts of the memories that were erased; with an
   * empty list if nothing was erased.
   */
  readonly onForgotten: (receipts: readonly Deleted[]) => void;
}

type Asking = 'tag' | 'archive' | 'forget';

/** Shows how many memories are loaded and selected, and buttons that tag, archive or erase the selected ones. */
export function SelectionBar({ items, selected, isWhole, onSelect, onDone, onForgotten }: SelectionProps) {
  const [asking, setAsking] = useState<Asking>();
  const chosen = items.filter(({ id }) => selected.has(id));
  return (
    <div class="between">
      <span class="small muted number" role="status">
        {chosen.length === 0
          ? `${texts.browse.loaded(items.length)}${isWhole ? `, ${texts.browse.all}` : ''}`
          : texts.browse.selected(chosen.length)}
      </span>
      {may('write') && (
        <div class="row">
          <Small onClick={() => onSelect(chosen.length === 0 ? new Set(items.map(({ id }) => id)) : new Set())}>
            {chosen.length === 0 ? texts.browse.selectAll : texts.browse.selectNone}
          </Small>
          {chosen.length > 0 && (
            <>
              <Small onClick={() => setAsking('tag')}>{texts.browse.tag}</Small>
              <Small onClick={() => setAsking('archive')}>{texts.memory.archive}</Small>
              <Small isBad onClick={() => setAsking('forget')}>
                {texts.memory.forget}
              </Small>
            </>
          )}
        </div>
      )}
      {asking !== undefined && (
        <ChangeSelection
          asking={asking}
          chosen={chosen}
          onClose={() => setAsking(undefined)}
          onDone={() => {
            onSelect(new Set());
            onDone();
          }}
          onForgotten={onForgotten}
        />
      )}
    </div>
  );
}

function Small(props: { onClick: () => void; isBad?: boolean; children: string }) {
  return (
    <button class={`button button-small ${props.isBad === true ? 'button-bad' : ''}`} onClick={props.onClick}>
      {props.children}
    </button>
  );
}

interface ChangeProps {
  readonly asking: Asking;
  readonly chosen: readonly MemoryItem[];
  readonly onClose: () => void;
  readonly onDone: () => void;
  readonly onForgotten: (receipts: readonly Deleted[]) => void;
}

function ChangeSelection({ asking, chosen, onClose, onDone, onForgotten }: ChangeProps) {
  const [tags, setTags] = useState('');
  const title = {
    tag: texts.browse.tagTitle(chosen.length),
    archive: texts.browse.archiveTitle(chosen.length),
    forget: texts.browse.forgetTitle(chosen.length),
  }[asking];
  const change = async () => {
    const receipts: Deleted[] = [];
    const failed = await forEach(chosen, async (memory) => {
      if (asking === 'forget') receipts.push(await send<Deleted>('DELETE', `/memory/${memory.id}`));
      else await send('PATCH', `/memory/${memory.id}`, changesOf(asking, memory, listOf(tags)));
    });
    onForgotten(receipts);
    say(failed === 0 ? texts.browse.done(chosen.length) : texts.browse.partly(chosen.length - failed, failed));
    onDone();
  };
  return (
    <Dialog
      title={title}
      action={asking === 'tag' ? texts.browse.tag : texts.memory[asking]}
      isBad={asking === 'forget'}
      onDo={change}
      onClose={onClose}
    >
      {asking === 'tag' && (
        <Field label={texts.fields.tags} value={tags} onChange={setTags} placeholder={texts.fields.commas} />
      )}
      {asking === 'archive' && <p>{texts.browse.archiveAbout}</p>}
      {asking === 'forget' && <p>{texts.memory.forgetAbout}</p>}
      <p class="small muted number">{count(chosen.length)}</p>
    </Dialog>
  );
}

/** Returns the request that archives a memory, or that adds tags to it unless it was changed since it was read. */
function changesOf(asking: 'tag' | 'archive', { tags, version }: MemoryItem, added: readonly string[]) {
  if (asking === 'archive') return { body: { status: 'archived' } };
  return { body: { tags: [...new Set([...tags, ...added])] }, headers: { 'if-match': `"${version}"` } };
}

/**
 * Sends a request for each memory, four at once.
 * @returns the number of requests that failed
 */
async function forEach(
  memories: readonly MemoryItem[],
  change: (memory: MemoryItem) => Promise<unknown>,
): Promise<number> {
  const left = [...memories];
  let failed = 0;
  const run = async () => {
    for (let memory = left.shift(); memory !== undefined; memory = left.shift()) {
      await change(memory).catch(() => failed++);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  return failed;
}
