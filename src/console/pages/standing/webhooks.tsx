import { useState } from 'preact/hooks';
import { hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Check, Field } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { count } from '../../parts/format.ts';
import { type AddProps, EntryList, type Kind } from '../../parts/entry-list.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { CreatedWebhookItem, NewWebhookInput, WebhookItem } from '../../types.ts';

type EventKind = NonNullable<NewWebhookInput['events']>[number];
/** Kinds of events that the dialog offers. Webhooks for other kinds can be made by the API only. */
const KINDS: readonly EventKind[] = [
  'standing.answered',
  'memory.ready',
  'memory.updated',
  'memory.superseded',
  'memory.contradicted',
  'memory.archived',
  'memory.deleted',
  'document.ready',
  'document.failed',
  'job.dead',
];
export const WEBHOOKS: Kind<WebhookItem> = {
  path: '/webhooks',
  keyOf: ({ id }) => id,
  nameOf: ({ url }) => url,
  access: 'write',
  words: { ...texts.standing.hooks, label: texts.standing.tabs.webhooks },
  Add: AddHook,
  cells: (item) => (
    <>
      <td>
        <a href={hrefOf(['standing', item.id], { tab: 'webhooks' })}>
          <bdi>{item.url}</bdi>
        </a>
      </td>
      <td>{describeEvents(item)}</td>
      <td class="right">{count(item.deliveries.pending)}</td>
      <td class="right">{count(item.deliveries.delivered)}</td>
      <td class="right">{count(item.deliveries.dead)}</td>
    </>
  ),
};

/** Shows up to 1,000 webhooks. Callers who may write can add and remove webhooks. */
export function Webhooks() {
  return <EntryList kind={WEBHOOKS} query={{ l: 1000 }} />;
}

/** Describes which events are sent to a webhook. */
export function describeEvents({ events, user_id: user, standing_id: standing }: WebhookItem): string {
  const kinds = standing === null ? events.join(', ') || texts.standing.allKinds : texts.standing.answersOf;
  return user === null ? kinds : `${kinds} ${texts.standing.ofUser(user)}`;
}

function AddHook({ onClose, onDone, onSecret }: AddProps) {
  const bound = session.value?.caller?.user_id ?? null;
  const [url, setUrl] = useState('');
  const [user, setUser] = useState(bound ?? '');
  const [kinds, setKinds] = useState<readonly EventKind[]>([]);
  const add = async () => {
    const body = {
      url,
      ...(user === '' ? {} : { user_id: user }),
      ...(kinds.length === 0 ? {} : { events: kinds }),
    };
    const { secret } = await send<CreatedWebhookItem>('POST', '/webhooks', { body });
    onSecret(secret);
    onDone();
  };
  const toggle = (kind: EventKind, isChosen: boolean) =>
    setKinds((before) => (isChosen ? [...before, kind] : before.filter((other) => other !== kind)));
  return (
    <Dialog title={texts.standing.hooks.add} action={texts.save} onDo={add} onClose={onClose}>
      <Field label={texts.standing.address} value={url} onChange={setUrl} />
      <p class="small muted">{texts.standing.addressAbout}</p>
      {bound === null && (
        <Field label={texts.fields.user} value={user} onChange={setUser} placeholder={texts.fields.anyone} />
      )}
      <fieldset class="choices">
        <legend>
          {texts.standing.kinds}
          {kinds.length === 0 && <span class="muted"> · {texts.standing.allKinds}</span>}
        </legend>
        {KINDS.map((kind) => (
          <Check
            key={kind}
            label={kind}
            checked={kinds.includes(kind)}
            onChange={(isChosen) => toggle(kind, isChosen)}
          />
        ))}
      </fieldset>
    </Dialog>
  );
}
