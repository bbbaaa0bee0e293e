/** Commands that export and import all data of a tenant. */
import { type Command, InvalidArgumentError } from 'commander';
import { collect, overHttp } from '../options.ts';

/** Adds the commands `cairn export` and `cairn import`. */
export function addDataCommands(program: Command): void {
  overHttp(program, 'export')
    .description('write memories, documents and links into a file; needs an admin key')
    .argument('<file>', 'the file: lines of JSON, compressed if it ends with .gz; - for standard output')
    .option('--user <id>', 'only memories of this user')
    .option('--session <id>', 'only memories of this session')
    .option('--tag <tag>', 'only memories with this tag; may be repeated', collect)
    .option('--type <type>', 'only memories of this type; may be repeated', collect)
    .option('--from <time>', 'only memories of events from this time on, such as 2026-01-31')
    .option('--to <time>', 'only memories of events before this time')
    .option('--vectors', 'with the vectors, for a server with the same embedding model')
    .option('--markdown', 'into a new folder instead: a Markdown note for each memory and document')
    .option('--passphrase-file <file>', 'encrypt by the passphrase in this file (default: CAIRN_PASSPHRASE, if set)')
    .action(async (file: string, options: object) => (await import('../commands/export.ts')).exportData(file, options));
  overHttp(program, 'import')
    .description('store what another server or program exported; what is stored already is recognised')
    .argument('<format and file...>', 'a file, archive or folder, after its format if that is not to be guessed')
    .option('--dry-run', 'store nothing, and count what would be stored')
    .option('--user <id>', 'the user who owns what another program exported')
    .option('--map-user <old=new>', 'store the user old of the file as the user new; may be repeated', collect)
    .option('--from-line <number>', 'pass over the lines before this one', lineNumber)
    .option('--passphrase-file <file>', 'the file with the passphrase of an encrypted export')
    .addHelpText(
      'after',
      '\nFormats: cairn (an export), lines (memories as POST /memory/add takes them; - for stdin), chatgpt,\n' +
        'claude, mem0, zep, langgraph, server-memory, notes (Obsidian, basic-memory), openmemory (its SQLite file).\n' +
        'All but lines need an admin key. After an interruption run it again.',
    )
    .action(async (targets: string[], options: object) =>
      (await import('../commands/import-data.ts')).importData(targets, options),
    );
}

function lineNumber(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected the number of a line, from 1');
}
