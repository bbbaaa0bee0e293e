/** A list of entries that exist until they are removed: standing queries, webhooks, other servers. */
import type { ComponentChildren, ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import { send } from '../client.ts';
import { may } from '../session.ts';
import { texts } from '../texts.ts';
import { Empty, Failed, Waiting } from './basics.tsx';
import { Dialog } from './dialog.tsx';
import { Secret } from './secret.tsx';
import { Table } from './table.tsx';
import { say } from './toast.tsx';
import { useInterval, useLoad } from './use-load.ts';
import { Line } from './words.tsx';

export interface AddProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
  /** Called with the secret of the new entry, which is shown once; undefined if it has none. */
  readonly onSecret: (secret: string | undefined) => void;
}

/** Describes a kind of entry for `EntryList`. */
export interface Kind<Item> {
  /** Path of the list in the API. An entry is removed by DELETE on this path followed by its key. */
  readonly path: string;
  readonly keyOf: (item: Item) => string;
  /** Returns the name of an entry that the dialog before removal shows. */
  readonly nameOf: (item: Item) => string;
  /** Access that is needed to add and to remove entries. */
  readonly access: 'write' | 'admin';
  readonly words: {
    readonly label: string;
    readonly about?: string;
    readonly add: string;
    readonly emptyTitle: string;
    readonly empty: string;
    /** Headers of the columns. The last column has the buttons to remove; callers who may not remove do not see it. */
    readonly columns: readonly string[];
    readonly removeTitle: string;
  };
  /** Dialog that adds an entry. */
  readonly Add: ComponentType<AddProps>;
  /** Returns the table cells of an entry, without the cell that has the button to remove it. */
  readonly cells: (item: Item) => ComponentChildren;
}

/** Time between two reloads while the list has entries (ms). */
const LOOK_MS = 3_000;

interface EntryListProps<Item> {
  readonly kind: Kind<Item>;
  /** Query parameters of the list. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
}

/** Shows a list, with buttons to add and to remove entries for callers who have the access. */
export function EntryList<Item>({ kind, query = {} }: EntryListProps<Item>) {
  const { path, words, Add } = kind;
  const { data, error, reload } = useLoad(JSON.stringify([path, query]), (signal) =>
    send<{ items: readonly Item[] }>('GET', path, { query, signal }),
  );
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [removing, setRemoving] = useState<Item>();
  useInterval(() => data !== undefined && data.items.length > 0 && reload(), LOOK_MS);
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <div class="between">
        {words.about !== undefined && <p class="muted">{words.about}</p>}
        {may(kind.access) && (
          <button class="button button-first" onClick={() => setAdding(true)}>
            {words.add}
          </button>
        )}
      </div>
      {secret !== undefined && (
        <Secret
          title={texts.standing.secretTitle}
          about={texts.standing.secretAbout}
          secret={secret}
          onClose={() => setSecret(undefined)}
        />
      )}
      {data.items.length === 0 ? (
        <Empty title={words.emptyTitle}>
          <p>{words.empty}</p>
        </Empty>
      ) : (
        <Items kind={kind} items={data.items} onRemove={setRemoving} />
      )}
      {isAdding && <Add onClose={() => setAdding(false)} onDone={reload} onSecret={setSecret} />}
      {removing !== undefined && (
        <Remove kind={kind} item={removing} onClose={() => setRemoving(undefined)} onDone={reload} />
      )}
    </section>
  );
}

interface ItemsProps<Item> {
  readonly kind: Kind<Item>;
  readonly items: readonly Item[];
  readonly onRemove: (item: Item) => void;
}

function Items<Item>({ kind, items, onRemove }: ItemsProps<Item>) {
  const { words, access, keyOf, cells } = kind;
  return (
    <Table label={words.label} columns={may(access) ? words.columns : words.columns.slice(0, -1)}>
      {items.map((item) => (
        <tr key={keyOf(item)}>
          {cells(item)}
          {may(access) && (
            <td>
              <button class="button button-small button-bad" onClick={() => onRemove(item)}>
                {texts.remove}
              </button>
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

interface RemoveProps<Item> {
  readonly kind: Kind<Item>;
  readonly item: Item;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows the dialog that removes an entry. */
export function Remove<Item>({ kind, item, onClose, onDone }: RemoveProps<Item>) {
  const remove = async () => {
    await send('DELETE', `${kind.path}/${encodeURIComponent(kind.keyOf(item))}`);
    say(texts.removed);
    onDone();
  };
  return (
    <Dialog title={kind.words.removeTitle} action={texts.remove} isBad onDo={remove} onClose={onClose}>
      <p>
        <Line>{kind.nameOf(item)}</Line>
      </p>
    </Dialog>
  );
}
