import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Check } from '../../parts/basics.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { isBound, presentTenant, session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { ServerList } from '../../types.ts';
import { namesIn } from './query-params.ts';

/**
 * Shows checkboxes for the other tenants and servers to which the query can also be sent; nothing if there are none.
 * Servers are left out if the caller is not allowed to query other servers.
 */
export function AlsoAsk() {
  const caller = session.value?.caller;
  // Without a key one may read alone where reads are public; on a machine without keys one may do everything.
  const isPublic = caller?.key_id === 'anonymous' && caller.role === 'read';
  const mayAskServers = caller != null && !isBound() && !isPublic;
  const { data } = useLoad(mayAskServers ? 'servers' : null, (signal) =>
    send<ServerList>('GET', '/federation/servers', { signal }).catch(() => undefined),
  );
  const tenants = (caller?.tenants ?? []).filter((tenant) => tenant !== presentTenant());
  const servers = data?.items ?? [];
  if (tenants.length + servers.length === 0) return null;
  return (
    <fieldset class="choices wide">
      <legend>{texts.federated.also}</legend>
      {tenants.map((tenant) => (
        <Member key={`tenant ${tenant}`} list="tenants" name={tenant} label={texts.federated.tenant(tenant)} />
      ))}
      {servers.map(({ name }) => (
        <Member key={`server ${name}`} list="servers" name={name} label={name} />
      ))}
    </fieldset>
  );
}

function Member({ list, name, label }: { list: 'tenants' | 'servers'; name: string; label: string }) {
  const chosen = namesIn(address.value.params, list);
  const toggle = (isChosen: boolean) =>
    changeParams({ [list]: (isChosen ? [...chosen, name] : chosen.filter((other) => other !== name)).join(',') });
  return <Check label={label} checked={chosen.includes(name)} onChange={toggle} />;
}
