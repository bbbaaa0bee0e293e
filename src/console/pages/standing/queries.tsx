import { useState } from 'preact/hooks';
import { address, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Field, Time } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { count } from '../../parts/format.ts';
import { type AddProps, EntryList, type Kind } from '../../parts/entry-list.tsx';
import { say } from '../../parts/toast.tsx';
import { Line } from '../../parts/words.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { CreatedStanding, StandingItem } from '../../types.ts';

export const QUERIES: Kind<StandingItem> = {
  path: '/standing',
  keyOf: ({ id }) => id,
  nameOf: ({ query }) => query,
  access: 'write',
  words: { ...texts.standing.queries, label: texts.standing.title },
  Add: AddQuery,
  cells: (item) => (
    <>
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
    </>
  ),
};

/**
 * Shows up to 1,000 standing queries, of one user if the address has `user_id`. Callers who may write can add and
 * remove queries.
 */
export function Queries() {
  return <EntryList kind={QUERIES} query={{ l: 1000, user_id: address.value.params.get('user_id') ?? undefined }} />;
}

function AddQuery({ onClose, onDone, onSecret }: AddProps) {
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
    <Dialog title={texts.standing.queries.add} action={texts.save} onDo={add} onClose={onClose}>
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
