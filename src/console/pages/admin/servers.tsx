import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { Field, Time } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { type AddProps, EntryList, type Kind } from '../../parts/entry-list.tsx';
import { say } from '../../parts/toast.tsx';
import { texts } from '../../texts.ts';
import type { ServerItem } from '../../types.ts';

const SERVERS: Kind<ServerItem> = {
  path: '/federation/servers',
  keyOf: ({ name }) => name,
  nameOf: ({ name, url }) => `${name}: ${url}`,
  access: 'admin',
  words: { ...texts.federated.servers, label: texts.admin.tabs.servers },
  Add: AddServer,
  cells: ({ name, url, tenant, has_key: hasKey, created_at: at }) => (
    <>
      <td>{name}</td>
      <td>
        <bdi>{url}</bdi>
      </td>
      <td>{tenant ?? texts.federated.firstTenant}</td>
      <td>{hasKey ? texts.federated.hasKey : texts.federated.noKey}</td>
      <td>
        <Time at={at} />
      </td>
    </>
  ),
};

/** Shows the other servers to which queries of the tenant may be sent. */
export function Servers() {
  return <EntryList kind={SERVERS} />;
}

function AddServer({ onClose, onDone }: AddProps) {
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [key, setKey] = useState('');
  const [tenant, setTenant] = useState('');
  const add = async () => {
    const body = { name, url, ...(key === '' ? {} : { key }), ...(tenant === '' ? {} : { tenant }) };
    await send('POST', '/federation/servers', { body });
    say(texts.federated.registered(name));
    onDone();
  };
  return (
    <Dialog title={texts.federated.servers.add} action={texts.save} onDo={add} onClose={onClose}>
      <div class="fields">
        <Field label={texts.federated.name} value={name} onChange={setName} />
        <Field
          label={texts.federated.remoteTenant}
          value={tenant}
          onChange={setTenant}
          placeholder={texts.federated.firstTenant}
        />
      </div>
      <Field label={texts.federated.address} value={url} onChange={setUrl} placeholder="https://" />
      <p class="small muted">{texts.federated.addressAbout}</p>
      <Field label={texts.federated.key} type="password" value={key} onChange={setKey} />
      <p class="small muted">{texts.federated.keyAbout}</p>
    </Dialog>
  );
}
