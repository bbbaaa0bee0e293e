import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Meter, PageHead, SectorName, Tabs, Time, Waiting } from '../../parts/basics.tsx';
import { Erased } from '../../parts/erased.tsx';
import { VirtualList } from '../../parts/virtual-list.tsx';
import { Line } from '../../parts/words.tsx';
import { isBound, may, session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { Deleted, MemoryItem, MemoryList } from '../../types.ts';
import { AddMemory } from './add-memory.tsx';
import { Changes } from './changes.tsx';
import { FadingSoon } from './fading-soon.tsx';
import { Filters, listBodyOf } from './filters.tsx';
import { Gathered } from './gathered.tsx';
import { Names } from './names.tsx';
import { Contradictions, Duplicates } from './pairs.tsx';
import { SelectionBar } from './selection.tsx';
import { type Pages, usePages } from './use-pages.ts';

/**
 * Number of memories on the first page of the list; it is smaller than `PAGE`, so that the page loads quickly. `PAGE`
 * is the number on each further page.
 */
const FIRST_PAGE = 200;
const PAGE = 1_000;
const ROW_HEIGHT = 64;

const VIEWS = {
  changes: Changes,
  contradictions: Contradictions,
  duplicates: Duplicates,
  gathered: Gathered,
  fading: FadingSoon,
} as const;
type View = keyof typeof VIEWS;

/**
 * Tells whether the caller may see a view. The fading memories are those of all users, so only admins whose key is not
 * bound to a user or tags see them. Consolidations are hidden from keys that are bound to tags.
 */
function isFor(view: View): boolean {
  if (view === 'fading') return may('admin') && !isBound();
  return view !== 'gathered' || (session.value?.caller?.tags.length ?? 0) === 0;
}

/**
 * Page with the list of all memories, their changes, and memories to review: contradictions, near duplicates,
 * consolidations, and those that will soon be archived.
 */
export function Browse() {
  const views = (Object.keys(VIEWS) as View[]).filter(isFor);
  const view = views.find((name) => name === address.value.params.get('view'));
  const Other = view === undefined ? undefined : VIEWS[view];
  const tabs = (
    <Tabs
      label={texts.browse.views}
      value={view ?? 'all'}
      onChange={(next) => changeParams({ view: next === 'all' ? '' : next, look: '', run: '' }, { replace: true })}
      options={(['all', ...views] as const).map((name) => [name, texts.browse.tabs[name]])}
    />
  );
  if (Other === undefined) return <AllMemories tabs={tabs} />;
  return (
    <div class="page">
      <PageHead title={texts.browse.title} about={texts.browse.about} />
      {tabs}
      <Other />
    </div>
  );
}

/** Shows the list of memories, with filters, a selection, and the names of users, sessions, tags and types. */
function AllMemories({ tabs }: { tabs: ComponentChildren }) {
  const [isAdding, setAdding] = useState(false);
  const [erased, setErased] = useState<readonly Deleted[]>([]);
  const { params } = address.value;
  const body = listBodyOf(params);
  const key = JSON.stringify(body);
  const pages = usePages<MemoryItem, string>(key, async (cursor, signal) => {
    const asked = { ...body, ...(cursor === undefined ? { limit: FIRST_PAGE } : { limit: PAGE, cursor }) };
    const { items, next_cursor: next } = await send<MemoryList>('POST', '/memory/list', { body: asked, signal });
    return { items, next: next ?? undefined };
  });
  const isEmpty = pages.items.length === 0 && pages.isWhole;
  return (
    <div class="page">
      <PageHead title={texts.browse.title} about={texts.browse.about}>
        {may('write') && (
          <button class="button button-first" onClick={() => setAdding(true)}>
            {texts.browse.add}
          </button>
        )}
      </PageHead>
      {tabs}
      <Filters />
      <div class="columns">
        <div class="stack">
          {pages.error !== undefined && <Failed error={pages.error} retry={pages.reload} />}
          {pages.items.length === 0 && pages.isLoading && <Waiting />}
          {isEmpty && <NothingHere hasFilters={key !== '{}'} onAdd={() => setAdding(true)} />}
          {erased.length > 0 && (
            <div role="status">
              <Erased receipts={erased} />
            </div>
          )}
          {pages.items.length > 0 && <List key={key} pages={pages} onForgotten={setErased} />}
        </div>
        <Names />
      </div>
      {isAdding && (
        <AddMemory user={params.get('user_id') ?? ''} onClose={() => setAdding(false)} onDone={pages.reload} />
      )}
    </div>
  );
}

function NothingHere({ hasFilters, onAdd }: { hasFilters: boolean; onAdd: () => void }) {
  return hasFilters ? (
    <Empty title={texts.browse.nothingTitle}>
      <p>{texts.browse.nothing}</p>
      <a class="button" href={hrefOf('browse')}>
        {texts.browse.clear}
      </a>
    </Empty>
  ) : (
    <Empty title={texts.browse.emptyTitle}>
      <p>{may('write') ? texts.browse.empty : texts.ask.beginReader}</p>
      {may('write') && (
        <div class="row">
          <button class="button button-first" onClick={onAdd}>
            {texts.browse.addFirst}
          </button>
          <a class="button" href={hrefOf('documents')}>
            {texts.ask.dropDocument}
          </a>
        </div>
      )}
    </Empty>
  );
}

interface ListProps {
  readonly pages: Pages<MemoryItem>;
  readonly onForgotten: (receipts: readonly Deleted[]) => void;
}

function List({ pages, onForgotten }: ListProps) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const toggle = (id: string) =>
    setSelected((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return (
    <section class="stack-tight">
      <SelectionBar
        items={pages.items}
        selected={selected}
        isWhole={pages.isWhole}
        onSelect={setSelected}
        onDone={pages.reload}
        onForgotten={onForgotten}
      />
      <VirtualList items={pages.items} rowHeight={ROW_HEIGHT} label={texts.browse.list} onNearEnd={pages.loadMore}>
        {(memory) => <Row memory={memory} isSelected={selected.has(memory.id)} onToggle={toggle} />}
      </VirtualList>
    </section>
  );
}

interface RowProps {
  readonly memory: MemoryItem;
  readonly isSelected: boolean;
  readonly onToggle: (id: string) => void;
}

function Row({ memory, isSelected, onToggle }: RowProps) {
  return (
    <>
      {may('write') && (
        <input
          type="checkbox"
          checked={isSelected}
          aria-label={`${texts.browse.select}: ${memory.gist.slice(0, 60)}`}
          onChange={() => onToggle(memory.id)}
        />
      )}
      <div class="grow">
        <div class="line">
          <a class="line" href={hrefOf(['memory', memory.id])}>
            <Line>{memory.title === '' ? memory.gist : `${memory.title}: ${memory.gist}`}</Line>
          </a>
        </div>
        <div class="line small muted">
          <SectorName sector={memory.primary_sector} /> · <Time at={memory.event_time} />
          {memory.user_id !== '' && ` · ${memory.user_id}`}
          {memory.tags.map((tag) => ` · #${tag}`).join('')}
        </div>
      </div>
      <Meter value={memory.salience} name={texts.memory.salience} sector={memory.primary_sector} />
    </>
  );
}
