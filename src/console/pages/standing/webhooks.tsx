import { useState } from 'preact/hooks';
import { hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Check, Empty, Failed, Field, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { count } from '../../parts/format.ts';
import { Secret } from '../../parts/secret.tsx';
import { Table } from '../../parts/table.tsx';
import { say } from '../../parts/toast.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { may, session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { CreatedWebhookItem, NewWebhookInput, WebhookItem } from '../../types.ts';

type Kind = NonNullable<NewWebhookInput['events']>[number];
/** What most receivers want to be told of; other kinds are for the API. */
const KINDS: readonly Kind[] = [
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
/** Time between two looks at what was delivered (ms). */
const LOOK_MS = 3_000;

/** Shows the addresses that are told of events, with a new one and the end of one. */
export function Webhooks() {
  const { data, error, reload } = useLoad('webhooks', (signal) =>
    send<{ items: readonly WebhookItem[] }>('GET', '/webhooks', { query: { l: 1000 }, signal }),
  );
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [removing, setRemoving] = useState<WebhookItem>();
  useInterval(() => data !== undefined && data.items.length > 0 && reload(), LOOK_MS);
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <div class="between">
        <p class="muted">{texts.standing.hookAbout}</p>
        {may('write') && (
          <button class="button button-first" onClick={() => setAdding(true)}>
            {texts.standing.addHook}
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
        <Empty title={texts.standing.noHooks}>
          <p>{texts.standing.noHooksAbout}</p>
        </Empty>
      ) : (
        <HookTable items={data.items} onRemove={setRemoving} />
      )}
      {isAdding && <AddHook onClose={() => setAdding(false)} onDone={reload} onSecret={setSecret} />}
      {removing !== undefined && <RemoveHook item={removing} onClose={() => setRemoving(undefined)} onDone={reload} />}
    </section>
  );
}

interface HookTableProps {
  readonly items: readonly WebhookItem[];
  readonly onRemove: (item: WebhookItem) => void;
}

function HookTable({ items, onRemove }: HookTableProps) {
  const columns = may('write') ? texts.standing.hookColumns : texts.standing.hookColumns.slice(0, -1);
  return (
    <Table label={texts.standing.tabs.webhooks} columns={columns}>
      {items.map((item) => (
        <tr key={item.id}>
          <td>
            <a href={hrefOf(['standing', item.id], { tab: 'webhooks' })}>
              <bdi>{item.url}</bdi>
            </a>
          </td>
          <td>{toldOf(item)}</td>
          <td class="right">{count(item.deliveries.pending)}</td>
          <td class="right">{count(item.deliveries.delivered)}</td>
          <td class="right">{count(item.deliveries.dead)}</td>
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

/** Says which events an address is told of. */
export function toldOf({ events, user_id: user, standing_id: standing }: WebhookItem): string {
  const kinds = standing === null ? events.join(', ') || texts.standing.allKinds : texts.standing.answersOf;
  return user === null ? kinds : `${kinds} ${texts.standing.ofUser(user)}`;
}

interface AddHookProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
  readonly onSecret: (secret: string) => void;
}

function AddHook({ onClose, onDone, onSecret }: AddHookProps) {
  const bound = session.value?.caller?.user_id ?? null;
  const [url, setUrl] = useState('');
  const [user, setUser] = useState(bound ?? '');
  const [kinds, setKinds] = useState<readonly Kind[]>([]);
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
  const toggle = (kind: Kind, isChosen: boolean) =>
    setKinds((before) => (isChosen ? [...before, kind] : before.filter((other) => other !== kind)));
  return (
    <Dialog title={texts.standing.addHook} action={texts.save} onDo={add} onClose={onClose}>
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

interface RemoveHookProps {
  readonly item: WebhookItem;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Asks whether a webhook shall be deleted, and deletes it. */
export function RemoveHook({ item, onClose, onDone }: RemoveHookProps) {
  const remove = async () => {
    await send('DELETE', `/webhooks/${item.id}`);
    say(texts.standing.removed);
    onDone();
  };
  return (
    <Dialog title={texts.standing.removeHook} action={texts.standing.remove} isBad onDo={remove} onClose={onClose}>
      <p>{item.url}</p>
    </Dialog>
  );
}
