/** A list of things that are kept until somebody removes them: standing queries, webhooks, other servers. */
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
  /** Takes a secret that came with the new thing, to be shown once; undefined for none. */
  readonly onSecret: (secret: string | undefined) => void;
}

/** One kind of such things. */
export interface Kind<Item> {
  /** Path of the list; an item is removed at this path and its key. */
  readonly path: string;
  readonly keyOf: (item: Item) => string;
  /** By what people know an item, in the question whether to remove it. */
  readonly nameOf: (item: Item) => string;
  /** Who may add and remove. */
  readonly access: 'write' | 'admin';
  readonly words: {
    readonly label: string;
    readonly about?: string;
    readonly add: string;
    readonly emptyTitle: string;
    readonly empty: string;
    /** The last column is that of the buttons that remove. */
    readonly columns: readonly string[];
    readonly removeTitle: string;
  };
  /** The dialog that adds one. */
  readonly Add: ComponentType<AddProps>;
  /** The cells of an item, all but the last. */
  readonly cells: (item: Item) => ComponentChildren;
}

/** Time between two looks at what changes by itself, such as the number of answers (ms). */
const LOOK_MS = 3_000;

interface KeptListProps<Item> {
  readonly kind: Kind<Item>;
  /** Parameters of the list. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
}

/** The list, with what adds to it and what takes from it for those who may. */
export function KeptList<Item>({ kind, query = {} }: KeptListProps<Item>) {
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

/** Asks whether to remove one, and does it. */
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
