import type { ComponentType } from 'preact';
import { address, changeParams } from '../../address.ts';
import { Empty, PageHead, Tabs } from '../../parts/basics.tsx';
import { isOperator, may } from '../../session.ts';
import { texts } from '../../texts.ts';
import { Audit } from './audit.tsx';
import { Backups } from './backups.tsx';
import { Keys } from './keys.tsx';
import { Limits } from './limits.tsx';
import { Model } from './model.tsx';
import { Receipts } from './receipts.tsx';
import { Servers } from './servers.tsx';
import { Service } from './service.tsx';
import { Settings } from './settings.tsx';
import { Tenants } from './tenants.tsx';

const TABS = {
  keys: Keys,
  tenants: Tenants,
  limits: Limits,
  settings: Settings,
  service: Service,
  model: Model,
  backups: Backups,
  servers: Servers,
  receipts: Receipts,
  audit: Audit,
} as const satisfies Readonly<Record<string, ComponentType>>;
type Tab = keyof typeof TABS;
/** Tabs about the whole service, which are shown to operators (admins of the default tenant) only. */
const OF_SERVICE: ReadonlySet<Tab> = new Set(['tenants', 'service', 'backups']);

/**
 * Page for admins, with tabs for keys, limits, settings, the embedding model, servers, receipts and the audit log;
 * operators also see tenants, the service and backups.
 */
export function Admin() {
  if (!may('admin')) return <Empty title={texts.admin.forAdmins} />;
  const tabs = (Object.keys(TABS) as Tab[]).filter((name) => isOperator() || !OF_SERVICE.has(name));
  const asked = address.value.params.get('tab');
  const tab = tabs.find((name) => name === asked) ?? 'keys';
  const View = TABS[tab];
  return (
    <div class="page">
      <PageHead title={texts.admin.title} about={texts.admin.about} />
      <Tabs
        label={texts.admin.views}
        value={tab}
        onChange={(next) =>
          changeParams({ tab: next === 'keys' ? '' : next, find: '', receipt: '', u: '' }, { replace: true })
        }
        options={tabs.map((name) => [name, texts.admin.tabs[name]])}
      />
      <View />
    </div>
  );
}
