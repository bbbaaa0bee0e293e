import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { Choice, Empty, Failed, Field, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Secret } from '../../parts/secret.tsx';
import { Table } from '../../parts/table.tsx';
import { say } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { isOperator } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { KeyItem, MadeKey } from '../../types.ts';
import { listOf } from '../memory/change-dialogs.tsx';

/** Shows up to 1,000 keys of the tenant, with buttons that make and revoke a key. */
export function Keys() {
  const { data, error, reload } = useLoad('keys', (signal) =>
    send<{ items: readonly KeyItem[] }>('GET', '/admin/keys', { query: { l: 1000 }, signal }),
  );
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<MadeKey>();
  const [revoking, setRevoking] = useState<KeyItem>();
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <div class="between">
        <p class="muted">{texts.admin.keysAbout}</p>
        <button class="button button-first" onClick={() => setMaking(true)}>
          {texts.admin.makeKey}
        </button>
      </div>
      {made !== undefined && (
        <Secret
          title={[texts.admin.madeTitle, made.key.name].filter(Boolean).join(': ')}
          about={texts.admin.madeAbout}
          secret={made.secret}
          onClose={() => setMade(undefined)}
        />
      )}
      {data.items.length === 0 ? (
        <Empty title={texts.admin.noKeys}>
          <p>{texts.admin.noKeysAbout}</p>
        </Empty>
      ) : (
        <Table label={texts.admin.tabs.keys} columns={texts.admin.keyColumns}>
          {data.items.map((key) => (
            <KeyRow key={key.id} item={key} onRevoke={() => setRevoking(key)} />
          ))}
        </Table>
      )}
      {isMaking && <MakeKey onClose={() => setMaking(false)} onMade={setMade} onDone={reload} />}
      {revoking !== undefined && <Revoke item={revoking} onClose={() => setRevoking(undefined)} onDone={reload} />}
    </section>
  );
}

function KeyRow({ item, onRevoke }: { item: KeyItem; onRevoke: () => void }) {
  const isExpired = item.expires_at !== null && item.expires_at <= Date.now();
  return (
    <tr>
      <td class="mono">{item.id}</td>
      <td>{item.name}</td>
      <td>{item.role}</td>
      <td>{[item.user_id ?? '', ...item.tags.map((tag) => `#${tag}`)].filter(Boolean).join(' ') || '–'}</td>
      <td>{item.last_used_at === null ? texts.memory.never : <Time at={item.last_used_at} />}</td>
      <td>
        {item.revoked_at !== null && <span class="chip chip-bad">{texts.admin.revoked}</span>}
        {item.revoked_at === null && isExpired && <span class="chip chip-warn">{texts.admin.expired}</span>}
        {item.revoked_at === null && !isExpired && <span class="chip chip-good">{texts.admin.valid}</span>}
      </td>
      <td>
        {item.revoked_at === null && (
          <button
            class="button button-small button-bad"
            aria-label={`${texts.admin.revoke} ${item.name || item.id}`}
            onClick={onRevoke}
          >
            {texts.admin.revoke}
          </button>
        )}
      </td>
    </tr>
  );
}

interface MakeKeyProps {
  readonly onClose: () => void;
  readonly onMade: (made: MadeKey) => void;
  readonly onDone: () => void;
}

function MakeKey({ onClose, onMade, onDone }: MakeKeyProps) {
  const [role, setRole] = useState('write');
  const [name, setName] = useState('');
  const [user, setUser] = useState('');
  const [tags, setTags] = useState('');
  const [expires, setExpires] = useState('');
  const [tenants, setTenants] = useState('');
  const make = async () => {
    const body = {
      role,
      ...(name === '' ? {} : { name }),
      ...(user === '' ? {} : { user_id: user }),
      ...(listOf(tags).length === 0 ? {} : { tags: listOf(tags) }),
      ...(expires === '' ? {} : { expires_at: new Date(expires).getTime() }),
      ...(listOf(tenants).length === 0 ? {} : { tenants: listOf(tenants) }),
    };
    onMade(await send<MadeKey>('POST', '/admin/keys', { body }));
    onDone();
  };
  return (
    <Dialog title={texts.admin.makeKey} action={texts.admin.make} onDo={make} onClose={onClose}>
      <Choice label={texts.admin.role} value={role} onChange={setRole} options={Object.entries(texts.admin.roles)} />
      <Field label={texts.admin.keyName} value={name} onChange={setName} />
      <div class="fields">
        {role !== 'admin' && (
          <>
            <Field label={texts.admin.boundUser} value={user} onChange={setUser} placeholder={texts.admin.unbound} />
            <Field label={texts.admin.boundTags} value={tags} onChange={setTags} placeholder={texts.admin.unbound} />
          </>
        )}
        <Field label={texts.admin.expiresAt} type="date" value={expires} onChange={setExpires} />
        {isOperator() && (
          <Field
            label={texts.admin.forTenants}
            value={tenants}
            onChange={setTenants}
            placeholder={texts.fields.commas}
          />
        )}
      </div>
    </Dialog>
  );
}

function Revoke({ item, onClose, onDone }: { item: KeyItem; onClose: () => void; onDone: () => void }) {
  const revoke = async () => {
    await send('DELETE', `/admin/keys/${item.id}`);
    say(texts.admin.revokedNow);
    onDone();
  };
  return (
    <Dialog
      title={texts.admin.revokeTitle(item.name || item.id)}
      action={texts.admin.revoke}
      isBad
      onDo={revoke}
      onClose={onClose}
    >
      <p>{texts.admin.revokeAbout}</p>
    </Dialog>
  );
}
