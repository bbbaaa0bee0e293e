import { send } from '../../client.ts';
import { Failed, Time, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { AuditItem } from '../../types.ts';

/** Shows the latest 100 records of the tenant's audit log. */
export function Audit() {
  const { data, error, reload } = useLoad('audit', (signal) =>
    send<{ items: readonly AuditItem[] }>('GET', '/audit', { query: { limit: 100 }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  if (data.items.length === 0) return <p class="muted">{texts.admin.noAudit}</p>;
  return (
    <Table label={texts.admin.tabs.audit} columns={texts.admin.auditColumns}>
      {data.items.map(({ no, at, key, action, detail }) => (
        <tr key={no}>
          <td>{count(no)}</td>
          <td>
            <Time at={at} />
          </td>
          <td>{key ?? '–'}</td>
          <td>{action}</td>
          <td class="mono">{JSON.stringify(detail)}</td>
        </tr>
      ))}
    </Table>
  );
}
