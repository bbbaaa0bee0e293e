import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Failed, Field, Waiting } from '../../parts/basics.tsx';
import { Table } from '../../parts/table.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { SettingItem } from '../../types.ts';

/**
 * Shows the settings with which the service was started, and where each value comes from, those from the environment
 * first. It is for operators.
 */
export function Service() {
  const wanted = address.value.params.get('find') ?? '';
  const { data, error, reload } = useLoad('service', (signal) =>
    send<{ items: readonly SettingItem[] }>('GET', '/admin/settings', { signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  const words = wanted.toLowerCase().split(/\s+/);
  const found = data.items
    .filter(({ name, about }) => words.every((word) => `${name} ${about}`.toLowerCase().includes(word)))
    .toSorted((a, b) => Number(b.origin === 'environment') - Number(a.origin === 'environment'));
  return (
    <section class="stack">
      <p class="muted">{texts.admin.serviceAbout}</p>
      <div class="fields" role="search">
        <Field
          label={texts.admin.findSetting}
          type="search"
          value={wanted}
          onChange={(find) => changeParams({ find }, { replace: true })}
        />
      </div>
      {found.length === 0 && <p class="muted">{texts.admin.noSetting}</p>}
      {found.length > 0 && (
        <Table label={texts.admin.tabs.service} columns={texts.admin.serviceColumns}>
          {found.map((setting) => (
            <tr key={setting.name}>
              <td>
                <code>{setting.name}</code>
                <div class="muted">{setting.about}</div>
              </td>
              <td class="mono secret">
                {setting.hidden ? texts.admin.secretValue : (setting.value ?? texts.admin.noValue)}
              </td>
              <td>
                <span class={`chip ${setting.origin === 'environment' ? 'chip-good' : ''}`}>
                  {texts.admin.origins[setting.origin]}
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
