import { useState } from 'preact/hooks';
import { address, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Field, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { count } from '../../parts/format.ts';
import { Secret } from '../../parts/secret.tsx';
import { Table } from '../../parts/table.tsx';
import { say } from '../../parts/toast.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { may, session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { CreatedStanding, StandingItem } from '../../types.ts';

/** Time between two looks at the number of answers (ms). */
const LOOK_MS = 3_000;

/** Shows the questions that stand, with a new one and the end of one. */
export function Queries() {
  const user = address.value.params.get('user_id') ?? undefined;
  const { data, error, reload } = useLoad(`standing ${user}`, (signal) =>
    send<{ items: readonly StandingItem[] }>('GET', '/standing', { query: { l: 1000, user_id: user }, signal }),
  );
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [removing, setRemoving] = useState<StandingItem>();
  useInterval(() => data !== undefined && data.items.length > 0 && reload(), LOOK_MS);
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      {may('write') && (
        <div>
          <button class="button button-first" onClick={() => setAdding(true)}>
            {texts.standing.add}
          </button>
        </div>
      )}
      {secret !== undefined && (
        <Secret
          title={texts.standing.secretTitle}
          about={texts.standing.secretAbout}
          secret={secret}
          onClose={() => setSecret(undefined)}
        />
      )}
      {data.items.length === 0 ? (
        <Empty title={texts.standing.emptyTitle}>
          <p>{texts.standing.empty}</p>
        </Empty>
      ) : (
        <QueryTable items={data.items} onRemove={setRemoving} />
      )}
      {isAdding && <AddQuery onClose={() => setAdding(false)} onDone={reload} onSecret={setSecret} />}
      {removing !== undefined && <RemoveQuery item={removing} onClose={() => setRemoving(undefined)} onDone={reload} />}
    </section>
  );
}

interface QueryTableProps {
  readonly items: readonly StandingItem[];
  readonly onRemove: (item: StandingItem) => void;
}

function QueryTable({ items, onRemove }: QueryTableProps) {
  const columns = may('write') ? texts.standing.columns : texts.standing.columns.slice(0, -1);
  return (
    <Table label={texts.standing.title} columns={columns}>
      {items.map((item) => (
        <tr key={item.id}>
          <td>
            <a href={hrefOf(['standing', item.id])}>
              <Line>{item.query}</Line>
            </a>
          </td>
          <td>{item.user_id ?? texts.fields.anyone}</td>
          <td class="right">{count(item.answers)}</td>
          <td>
            <Time at={item.created_at} />
          </td>
          {may('write') && (
            <td>
              <button class="button button-small button-bad" onClick={() => onRemove(item)}>
                {texts.standing.remove}
              </button>
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

interface AddQueryProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
  readonly onSecret: (secret: string | undefined) => void;
}

function AddQuery({ onClose, onDone, onSecret }: AddQueryProps) {
  const bound = session.value?.caller?.user_id ?? null;
  const [query, setQuery] = useState('');
  const [user, setUser] = useState(bound ?? '');
  const [floor, setFloor] = useState('');
  const [url, setUrl] = useState('');
  const add = async () => {
    const body = {
      query,
      ...(user === '' ? {} : { user_id: user }),
      ...(floor === '' ? {} : { min_score: Number(floor) }),
      ...(url === '' ? {} : { webhook: { url } }),
    };
    const { webhook } = await send<CreatedStanding>('POST', '/standing', { body });
    onSecret(webhook?.secret);
    say(texts.standing.added);
    onDone();
  };
  return (
    <Dialog title={texts.standing.add} action={texts.save} onDo={add} onClose={onClose}>
      <Field label={texts.standing.question} value={query} onChange={setQuery} />
      <div class="fields">
        {bound === null && (
          <Field label={texts.fields.user} value={user} onChange={setUser} placeholder={texts.fields.anyone} />
        )}
        <Field
          label={texts.standing.floor}
          type="number"
          min={0}
          max={1}
          step={0.01}
          value={floor}
          onChange={setFloor}
          placeholder={texts.standing.asDefault}
        />
      </div>
      <Field label={texts.standing.webhook} value={url} onChange={setUrl} />
      <p class="small muted">{texts.standing.addressAbout}</p>
    </Dialog>
  );
}

interface RemoveQueryProps {
  readonly item: StandingItem;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Asks whether a standing query shall be deleted, and deletes it. */
export function RemoveQuery({ item, onClose, onDone }: RemoveQueryProps) {
  const remove = async () => {
    await send('DELETE', `/standing/${item.id}`);
    say(texts.standing.removed);
    onDone();
  };
  return (
    <Dialog title={texts.standing.removeTitle} action={texts.standing.remove} isBad onDo={remove} onClose={onClose}>
      <p>
        <Line>{item.query}</Line>
      </p>
    </Dialog>
  );
}
