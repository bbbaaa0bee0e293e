import { send } from '../../client.ts';
import { Failed, Field, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';

interface LimitsReply {
  readonly in_force: Readonly<Record<string, number>>;
  readonly own: Readonly<Record<string, number>>;
}

const nameOf = (limit: string) => texts.admin.limitNames[limit] ?? limit.replaceAll('_', ' ');

/**
 * Shows the limits of the tenant: for each limit the value that applies, whether it was set for this tenant, and an
 * input for a new value.
 */
export function Limits() {
  const { data, error, reload } = useLoad('limits', (signal) => send<LimitsReply>('GET', '/admin/limits', { signal }));
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  const change = (name: string) => (value: string) =>
    void send('PATCH', '/admin/limits', { body: { [name]: value === '' ? null : Number(value) } }).then(() => {
      say(texts.admin.changed);
      reload();
    }, sayRefusal);
  return (
    <section class="stack">
      <p class="muted">{texts.admin.limitsAbout}</p>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.admin.tabs.limits}>
        <table>
          <thead>
            <tr>
              {texts.admin.limitColumns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Object.entries(data.in_force).map(([name, value]) => (
              <tr key={name}>
                <td>{nameOf(name)}</td>
                <td class="number">{value === 0 ? texts.admin.noLimit : count(value)}</td>
                <td>{Object.hasOwn(data.own, name) ? texts.admin.ofTenant : texts.admin.ofService}</td>
                <td>
                  <Field
                    label={texts.admin.newLimit(nameOf(name))}
                    type="number"
                    isBare
                    min={0}
                    value={data.own[name] === undefined ? '' : String(data.own[name])}
                    onChange={change(name)}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
