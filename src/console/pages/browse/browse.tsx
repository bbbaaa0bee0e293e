import { useState } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Empty, Failed, Field, Meter, PageHead, SectorName, Time, Waiting } from '../../parts/basics.tsx';
import { VirtualList } from '../../parts/virtual-list.tsx';
import { Line } from '../../parts/words.tsx';
import { may, session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { MemoryItem, MemoryPage } from '../../types.ts';
import { AddMemory } from './add-memory.tsx';
import { SelectionBar } from './selection.tsx';
import { usePages } from './use-pages.ts';

const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'];
/** Memories on a page. */
const PAGE = 100;
const ROW_HEIGHT = 64;

/** All memories, with filters and a selection. */
export function Browse() {
  const [isAdding, setAdding] = useState(false);
  const filters = filtersOf(address.value.params);
  const hasFilters = Object.keys(filters).length > 0;
  const pages = usePages<MemoryItem, number>(JSON.stringify(filters), async (cursor, signal) => {
    const query = { ...filters, l: PAGE, u: cursor ?? 0 };
    const { items, next } = await send<MemoryPage>('GET', '/memory/all', { query, signal });
    return { items, next };
  });
  const isEmpty = pages.items.length === 0 && !pages.isLoading && pages.error === undefined;
  return (
    <div class="page">
      <PageHead title={texts.browse.title} about={texts.browse.about}>
        {may('write') && (
          <button class="button button-first" onClick={() => setAdding(true)}>
            {texts.browse.add}
          </button>
        )}
      </PageHead>
      <Filters />
      {pages.error !== undefined && <Failed error={pages.error} retry={pages.reload} />}
      {pages.items.length === 0 && pages.isLoading && <Waiting />}
      {isEmpty && <NothingHere hasFilters={hasFilters} />}
      {pages.items.length > 0 && <List key={JSON.stringify(filters)} pages={pages} />}
      {isAdding && <AddMemory user={filters['user_id'] ?? ''} onClose={() => setAdding(false)} onDone={pages.reload} />}
    </div>
  );
}

const FILTERS = ['user_id', 'sector', 'written_by'] as const;

function filtersOf(params: URLSearchParams): Record<string, string> {
  const given = FILTERS.map((name) => [name, params.get(name)] as const);
  return Object.fromEntries(given.filter((entry): entry is [(typeof FILTERS)[number], string] => entry[1] !== null));
}

function Filters() {
  const { params } = address.value;
  const set = (name: string) => (value: string) => changeParams({ [name]: value });
  return (
    <div class="fields" role="search">
      {session.value?.caller?.user_id == null && (
        <Field
          label={texts.fields.user}
          placeholder={texts.fields.anyone}
          value={params.get('user_id') ?? ''}
          onChange={set('user_id')}
        />
      )}
      <Choice
        label={texts.fields.sector}
        value={params.get('sector') ?? ''}
        onChange={set('sector')}
        options={[['', texts.fields.all], ...SECTORS]}
      />
      <Field label={texts.fields.writtenBy} value={params.get('written_by') ?? ''} onChange={set('written_by')} />
    </div>
  );
}

function NothingHere({ hasFilters }: { hasFilters: boolean }) {
  return hasFilters ? (
    <Empty title={texts.browse.nothingTitle}>
      <p>{texts.browse.nothing}</p>
      <a class="button" href={hrefOf('browse')}>
        {texts.browse.clear}
      </a>
    </Empty>
  ) : (
    <Empty title={texts.browse.emptyTitle}>
      <p>{texts.browse.empty}</p>
    </Empty>
  );
}

function List({ pages }: { pages: ReturnType<typeof usePages<MemoryItem, number>> }) {
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
