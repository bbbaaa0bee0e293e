import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { Failed, Field, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { bytes, count } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { say } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { TenantPage } from '../../types.ts';

/** Shows the tenants of the service. It is for operators. */
export function Tenants() {
  const { data, error, reload } = useLoad('tenants', (signal) =>
    send<TenantPage>('GET', '/tenants', { query: { l: 1000 }, signal }),
  );
  const [isMaking, setMaking] = useState(false);
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <div class="between">
        <p class="muted">{texts.admin.tenantsAbout}</p>
        <button class="button button-first" onClick={() => setMaking(true)}>
          {texts.admin.makeTenant}
        </button>
      </div>
      <Table label={texts.admin.tabs.tenants} columns={texts.admin.tenantColumns}>
        {data.items.map((tenant) => (
          <tr key={tenant.id}>
            <td>{tenant.id}</td>
            <td>
              <Time at={tenant.created_at} />
            </td>
            <td class="right">{count(tenant.keys)}</td>
            <td class="right">{bytes(tenant.bytes)}</td>
          </tr>
        ))}
      </Table>
      <div class="stack-tight small muted">
        <p>{texts.admin.eraseTenant}</p>
        <pre>cairn tenants erase ID --yes</pre>
      </div>
      {isMaking && <MakeTenant onClose={() => setMaking(false)} onDone={reload} />}
    </section>
  );
}

function MakeTenant({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [id, setId] = useState('');
  const make = async () => {
    await send('POST', '/tenants', { body: { id } });
    say(texts.admin.tenantMade(id));
    onDone();
  };
  return (
    <Dialog title={texts.admin.makeTenant} action={texts.admin.make} onDo={make} onClose={onClose}>
      <Field label={texts.admin.tenantId} value={id} onChange={setId} />
    </Dialog>
  );
}
