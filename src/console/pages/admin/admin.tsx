import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, PageHead, Tabs, Time, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { AuditItem, KeyItem } from '../../types.ts';
import { Limits } from './limits.tsx';
import { Model } from './model.tsx';
import { Settings } from './settings.tsx';

const TABS = ['keys', 'limits', 'settings', 'model', 'audit'] as const;

/** Keys, limits, settings, the embedding model and the audit log, for admins. */
export function Admin() {
  const tab = address.value.params.get('tab') ?? 'keys';
  if (!may('admin')) return <Empty title={texts.admin.forAdmins} />;
  return (
    <div class="page">
      <PageHead title={texts.admin.title} about={texts.admin.about} />
      <Tabs
        label={texts.admin.views}
        value={tab}
        onChange={(next) => changeParams({ tab: next === 'keys' ? '' : next }, { replace: true })}
        options={TABS.map((name) => [name, texts.admin.tabs[name]])}
      />
      {tab === 'keys' && <Keys />}
      {tab === 'limits' && <Limits />}
      {tab === 'settings' && <Settings />}
      {tab === 'model' && <Model />}
      {tab === 'audit' && <Audit />}
    </div>
  );
}

function Keys() {
  const { data, error, reload } = useLoad('keys', (signal) =>
    send<{ items: readonly KeyItem[] }>('GET', '/admin/keys', { query: { l: 1000 }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <p class="muted">{texts.admin.keysAbout}</p>
      <pre>cairn keys create --role write --name "Ana's laptop" --user ana</pre>
      {data.items.length === 0 ? (
        <p>{texts.admin.noKeys}</p>
      ) : (
        <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.admin.tabs.keys}>
          <table>
            <thead>
              <tr>
                {texts.admin.keyColumns.map((column) => (
                  <th key={column}>{column}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {data.items.map((key) => (
                <KeyRow key={key.id} item={key} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function KeyRow({ item }: { item: KeyItem }) {
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
    </tr>
  );
}

function Audit() {
  const { data, error, reload } = useLoad('audit', (signal) =>
    send<{ items: readonly AuditItem[] }>('GET', '/audit', { query: { l: 100 }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  if (data.items.length === 0) return <p class="muted">{texts.admin.noAudit}</p>;
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.admin.tabs.audit}>
      <table>
        <thead>
          <tr>
            {texts.admin.auditColumns.map((column) => (
              <th key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {data.items.map(({ no, at, key, action, detail }) => (
            <tr key={no}>
              <td class="number">{count(no)}</td>
              <td>
                <Time at={at} />
              </td>
              <td>{key ?? '–'}</td>
              <td>{action}</td>
              <td class="mono">{JSON.stringify(detail)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
