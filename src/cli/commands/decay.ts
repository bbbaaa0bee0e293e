import { openStore, previewDecay } from '../../engine/for-admin.ts';
import { DAY_MS, type SalienceSpread } from '../../engine/index.ts';
import { withDataFolder } from '../data-folder.ts';
import { bold, count, counted, cut, cyan, dim, print, sparkline, table, widthOfTerminal } from '../terminal.ts';

/**
 * Runs `cairn decay --preview DATE`: prints how far the active memories of a tenant will have faded at that date if
 * none is recalled before, without changing them. It reads the tenant's file directly, so it needs no server.
 * @param options `preview` is the date, Unix ms
 * @throws CliError if tenants are kept in PostgreSQL, for an unknown tenant, and if its file does not exist
 */
export async function decay({
  preview: at,
  tenant,
}: {
  readonly preview: number;
  readonly tenant?: string;
}): Promise<void> {
  await withDataFolder(({ config, fileOf }) => {
    const now = Date.now();
    const store = openStore(fileOf(tenant), { role: 'reader' });
    try {
      const preview = previewDecay(store, {
        now,
        at,
        lambda: config.OM_DECAY_LAMBDA,
        archiveBelow: config.OM_ARCHIVE_BELOW,
      });
      const date = new Date(at).toISOString().slice(0, 10);
      if (preview.sectors.length === 0) return print('No memories yet.');
      print(
        bold(
          `Salience today and on ${date} (in ${counted(Math.round((at - now) / DAY_MS), 'day')}), without any recall`,
        ),
        '',
      );
      for (const { sector, count: n, before, after } of preview.sectors) {
        print(`${cyan(sector.padEnd(10))}  ${counted(n, 'memory', 'memories')}`);
        print(spreadLine('today', before), spreadLine(date, after));
      }
      print(dim(`${' '.repeat(12)}0        1  memories by tenth of salience`), '');
      if (config.OM_ARCHIVE_BELOW > 0) {
        print(`${count(preview.archived)} would be archived (OM_ARCHIVE_BELOW=${config.OM_ARCHIVE_BELOW})`, '');
      }
      if (preview.falls.length === 0) return print('No memory fades until then.');
      print(bold('Falling most'));
      const rows = preview.falls.map(({ memory, before, after }) => [
        `${before.toFixed(2)} → ${after.toFixed(2)}`,
        memory.primarySector,
        cut(memory.title === '' ? memory.content : `${memory.title}: ${memory.content}`, widthOfTerminal() - 26),
      ]);
      print(...table(rows, '<<<'));
    } finally {
      store.close();
    }
  });
}

function spreadLine(label: string, { average, tenths }: SalienceSpread): string {
  return `${label.padStart(10)}  ${sparkline(tenths)}  mean ${average.toFixed(2)}`;
}
