import { send } from '../../client.ts';
import { Empty, Failed, Time, Waiting } from '../../parts/basics.tsx';
import { bytes, duration } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { Backups as BackupsReply } from '../../types.ts';

/** Time between two reloads while a backup is due or being made (ms). */
const LOOK_MS = 3_000;

/** Shows the scheduled backups of the tenant, and a button that starts one. It is for operators. */
export function Backups() {
  const { data, error, reload } = useLoad('backups', (signal) =>
    send<BackupsReply>('GET', '/admin/backups', { query: { l: 100 }, signal }),
  );
  const state = data?.schedule?.state;
  useInterval(() => (state === 'due' || state === 'running') && reload(), LOOK_MS);
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  if (data.every_ms === null || data.schedule === null) return <NoBackups />;
  const start = () =>
    void send('POST', '/admin/backups', { body: {} }).then(() => {
      say(texts.admin.backupAsked);
      reload();
    }, sayRefusal);
  return (
    <section class="stack">
      <div class="between">
        <p class="muted">
          {texts.admin.backupsAbout(duration(data.every_ms), data.keep)}{' '}
          <span class={`chip ${data.schedule.state === 'failing' ? 'chip-bad' : ''}`}>
            {texts.admin.backupStates[data.schedule.state]}
          </span>
        </p>
        <button class="button button-first" onClick={start}>
          {texts.admin.backupNow}
        </button>
      </div>
      {data.items.length === 0 ? (
        <p class="muted">{texts.admin.backupEmpty}</p>
      ) : (
        <Files label={texts.admin.tabs.backups} files={data.items} />
      )}
      {data.control.length > 0 && (
        <>
          <h2>{texts.admin.controlBackups}</h2>
          <Files label={texts.admin.controlBackups} files={data.control} />
        </>
      )}
    </section>
  );
}

function NoBackups() {
  return (
    <Empty title={texts.admin.noBackups}>
      <p>{texts.admin.noBackupsAbout}</p>
      <pre>cairn backup backup.sqlite</pre>
    </Empty>
  );
}

function Files({ label, files }: { label: string; files: BackupsReply['items'] }) {
  return (
    <Table label={label} columns={texts.admin.backupColumns}>
      {files.map(({ file, at, bytes: size }) => (
        <tr key={file}>
          <td class="mono">{file}</td>
          <td>
            <Time at={at} />
          </td>
          <td class="right">{bytes(size)}</td>
        </tr>
      ))}
    </Table>
  );
}
