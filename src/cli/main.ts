import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { DAY_MS, FORMATS, JOB_STATES, PROFILES, QUEUE_NAMES, type QueueName, VERSION } from '../engine/index.ts';
import { reportError } from './report-error.ts';

/** The command line. Each command's code is loaded when it is called, so that help comes at once. */

const program = new Command('cairn')
  .description('A self-hosted memory for AI agents. Settings come from the environment and .env (see .env.example).')
  .version(VERSION)
  .exitOverride()
  .configureHelp({ showGlobalOptions: false })
  .showHelpAfterError('(cairn --help shows the commands)');

// ── Run ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

program.commandsGroup('Run');
program
  .command('serve')
  .description('serve the API and do the background work, in one process')
  .action(async () => (await import('../main.ts')).serve(process.env));
program
  .command('api')
  .description('serve the API alone')
  .action(async () => (await import('../api/main.ts')).serveApi(process.env));
program
  .command('worker')
  .description('do the background work beside an API process; with REDIS_URL any number of them')
  .addOption(new Option('--queues <names>', 'with REDIS_URL: only these, comma-separated').argParser(parseQueues))
  .addOption(new Option('--concurrency <n>', 'with REDIS_URL: encode jobs at once').argParser(parseConcurrency))
  .action(async (options: object) => (await import('../workers/main.ts')).runWorkerProcess(process.env, options));
program
  .command('demo')
  .description('remember documents in a throwaway store, ask three questions, show why each answer came')
  .addArgument(new Argument('[folder]', "a folder of Markdown files; Cairn's own documents by default"))
  .option('--ask <question>', 'ask this instead; may be repeated', collect)
  .action(async (...args) => (await import('./commands/demo.ts')).demo(...(args as [string?, object?])));
program.command('warm-up', { hidden: true }).action(async () => (await import('./warm-up.ts')).warmUp());

// ── Memories, over HTTP ──────────────────────────────────────────────────────────────────────────────────────────────

program.commandsGroup('Memories (of a server that runs)');
overHttp('add')
  .description('store a memory')
  .argument('<text...>', 'what to remember, or - to read it from standard input')
  .option('--user <id>', 'whose memory it is')
  .option('--session <id>', 'the conversation or task it belongs to')
  .option('--tag <tag>', 'may be repeated', collect)
  .option('--title <title>', 'a line above the text')
  .option('--metadata <json>', 'a JSON object', parseObject)
  .option('--wait', 'until it is classified, embedded and linked')
  .action(async (words: string[], options: object) => (await import('./commands/add.ts')).add(words, options));
asking('query')
  .description('find memories')
  .argument('<text...>', 'what to look for')
  .option('--explain', 'why each came')
  .addOption(new Option('--format <format>', 'prompt and text are for language models').choices(FORMATS))
  .option('--json', 'the same as --format json: as the server sends them')
  .action(async (words: string[], options: object) => (await import('./commands/query.ts')).query(words, options));
asking('explain')
  .description('why a memory does or does not come back for a query, and what would bring it back')
  .argument('<query>', 'what was looked for')
  .argument('<id>', 'the memory')
  .option('--json', 'as the server sends it')
  .action(async (text: string, id: string, options: object) =>
    (await import('./commands/explain.ts')).explain(text, id, options),
  );
overHttp('timeline')
  .description('what stood around a memory in time')
  .argument('<id>', 'as query --json and add show it')
  .option('--before <count>', 'how many earlier ones', integer(0, 100), 5)
  .option('--after <count>', 'how many later ones', integer(0, 100), 5)
  .option('--session', 'only of its session')
  .option('--json', 'as the server sends them')
  .action(async (id: string, options: { before: number; after: number }) =>
    (await import('./commands/timeline.ts')).timeline(id, options),
  );
overHttp('import')
  .description('store many memories; run it again after a break, what is stored is recognised')
  .argument('<file>', 'one JSON object a line, as POST /memory/add takes them; - for standard input')
  .action(async (file: string, options: object) => (await import('./commands/import.ts')).importLines(file, options));
overHttp('ingest')
  .description('hand in documents; run it again after a break or a change, what is known is recognised')
  .argument('<path or url...>', 'files, folders (whole, by type), patterns such as "docs/**/*.pdf", http(s) URLs')
  .option('--user <id>', 'whose documents they are')
  .option('--session <id>', 'the conversation or task they belong to')
  .option('--tag <tag>', 'may be repeated', collect)
  .option('--metadata <json>', 'a JSON object', parseObject)
  .option('--no-wait', 'do not wait until they are read, embedded and linked')
  .addHelpText(
    'after',
    '\nA file is known by its absolute path: one that changed replaces its old version. Files with the same bytes are one document.\nFolders are read without hidden files, symbolic links and node_modules.',
  )
  .action(async (targets: string[], options: { wait: boolean }) =>
    (await import('./commands/ingest.ts')).ingest(targets, options),
  );
overHttp('reflect')
  .description('let the language model write down what follows from the latest memories together')
  .option('--user <id>', 'whose memories; by default those of nobody in particular')
  .option('--session <id>', 'only those of this conversation or task')
  .option('--no-wait', 'do not wait until it is done')
  .action(async (options: { wait: boolean }) => (await import('./commands/reflect.ts')).reflect(options));
overHttp('stats')
  .description('memories, sectors, jobs and sizes')
  .action(async (options: object) => (await import('./commands/stats.ts')).stats(options));

overHttp('reembed')
  .description('embed all memories by the model that the settings name now, beside the old one until all are done')
  .option('--status', 'only show how far it is and what it would take')
  .option('--pause', 'stop; reembed goes on from there')
  .option('--cancel', 'give it up; the old model stays')
  .option('--without-refused', 'go over to the new model however many memories it refuses')
  .action(async (options: object) => (await import('./commands/reembed.ts')).reembed(options));

const embeddings = program.command('embeddings').description('calls of embedding providers and the language model');
overHttp('stats', embeddings, { isDefault: true })
  .description('calls, tokens, cost and what the cache saved, by day and model')
  .option('--days <count>', 'how far back', integer(1, 3660), 30)
  .action(async (options: { days: number }) => (await import('./commands/embeddings.ts')).embeddingStats(options));
overHttp('failures', embeddings)
  .description('calls that failed and why, newest first')
  .option('--limit <count>', 'how many at most', integer(1, 1000), 20)
  .action(async (options: { limit: number }) => (await import('./commands/embeddings.ts')).embeddingFailures(options));

const jobs = program.command('jobs').description('background work: list, retry, cancel, discard');
overHttp('list', jobs, { isDefault: true })
  .description('jobs and why they failed, newest first')
  .addOption(new Option('--state <state>', 'only those; dead ones have given up').choices(JOB_STATES))
  .option('--limit <count>', 'how many at most', integer(1, 1000), 20)
  .action(async (options: { limit: number }) => (await import('./commands/jobs.ts')).listJobs(options));
overHttp('retry', jobs)
  .description('start a dead, failed or cancelled job again, or all of a state')
  .argument('[id]')
  .addOption(new Option('--state <state>', 'all of these, in place of one').choices(['dead', 'cancelled']))
  .action(async (id: string | undefined, options: object) =>
    (await import('./commands/jobs.ts')).retryJobs(id, options),
  );
overHttp('cancel', jobs)
  .description('give up an unfinished job')
  .argument('<id>')
  .action(async (id: string, options: object) => (await import('./commands/jobs.ts')).cancelJob(id, options));
overHttp('discard', jobs)
  .description('take a dead or cancelled job off the list')
  .argument('<id>')
  .action(async (id: string, options: object) => (await import('./commands/jobs.ts')).discardJob(id, options));

// ── Operation, on the files ──────────────────────────────────────────────────────────────────────────────────────────

program.commandsGroup('Operation (on the files that OM_DB_PATH names)');
const tenants = program.command('tenants').description('create, list and erase tenants');
tenants
  .command('create <id>')
  .description('make a tenant, with a file of its own')
  .action(async (id: string) => (await import('./commands/tenants.ts')).createTenant(id));
tenants
  .command('list', { isDefault: true })
  .description('all tenants')
  .action(async () => (await import('./commands/tenants.ts')).listTenants());
tenants
  .command('erase <id>')
  .description('erase a tenant, its keys and its files; the server must be stopped')
  .option('--yes', 'I mean it')
  .action(async (id: string, options: object) => (await import('./commands/tenants.ts')).eraseTenant(id, options));

const keys = program.command('keys').description('create, list and revoke keys');
keys
  .command('create')
  .description('make a key; it is shown once')
  .option('--tenant <id>', 'whose memories it opens')
  .addOption(new Option('--role <role>', 'what it may do').choices(['read', 'write', 'admin']).default('write'))
  .option('--label <text>', 'what it is for')
  .action(async (options: { role: 'read' | 'write' | 'admin' }) =>
    (await import('./commands/keys.ts')).createKey(options),
  );
keys
  .command('list', { isDefault: true })
  .description('all keys, without their secrets')
  .option('--tenant <id>', 'only those of this tenant')
  .action(async (options: object) => (await import('./commands/keys.ts')).listKeys(options));
keys
  .command('revoke <id>')
  .description('make a key worthless, also to servers that run')
  .action(async (id: string) => (await import('./commands/keys.ts')).revokeKey(id));

onTenant('backup')
  .description('copy the memories into one file, also while the server runs')
  .argument('<file>', 'must not exist')
  .action(async (file: string, options: object) => (await import('./commands/backup.ts')).backup(file, options));
onTenant('restore')
  .description('put a backup in place; the server must be stopped')
  .argument('<file>', 'what `cairn backup` made')
  .option('--yes', 'I mean it')
  .action(async (file: string, options: object) => (await import('./commands/restore.ts')).restore(file, options));
onTenant('rebuild-index')
  .description('make the indexes again from the memories; the server must be stopped')
  .action(async (options: object) => (await import('./commands/rebuild-index.ts')).rebuildIndex(options));
onTenant('decay')
  .description('show how memories fade; changes nothing')
  .requiredOption('--preview <date>', 'a day to come, such as 2030-01-31, or a number of days, such as 30d', parseDay)
  .action(async (options: { preview: number }) => (await import('./commands/decay.ts')).decay(options));

function overHttp(name: string, parent = program, options: { isDefault?: boolean } = {}): Command {
  return parent
    .command(name, options)
    .option('--url <url>', 'the server (default: CAIRN_URL, or http://127.0.0.1 at OM_PORT)')
    .option('--key <key>', 'its key (default: CAIRN_API_KEY or OM_API_KEY)');
}

/** What may be said about a query. */
function asking(name: string): Command {
  return overHttp(name)
    .option('--user <id>', 'only the memories of this user')
    .option('-k, --k <count>', 'how many at most', integer(1, 200))
    .addOption(new Option('--profile <name>', 'how they are scored').choices(PROFILES))
    .option('--min-score <score>', 'leave out what scores less', fraction)
    .option('--as-of <time>', 'as things stood then, such as 2026-01-31', parseTime)
    .option('--deep', 'superseded, contradicted and archived ones too');
}

function onTenant(name: string): Command {
  return program.command(name).option('--tenant <id>', 'whose memories (default: the default tenant)');
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a number in ${min}..${max}`);
  };
}

function fraction(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError('expected a number in 0..1');
}

/** Checked by the server, which takes Unix milliseconds as a number. */
function parseTime(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('expected a JSON object such as {"source":"chat"}');
}

function parseQueues(text: string): QueueName[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.every((name) => (QUEUE_NAMES as readonly string[]).includes(name))) return names as QueueName[];
  throw new InvalidArgumentError(`expected some of ${QUEUE_NAMES.join(', ')}, separated by commas`);
}

function parseConcurrency(text: string): number {
  if (/^[1-9]\d?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected 1..99');
}

function parseDay(text: string): number {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const at =
    days !== undefined ? Date.now() + Number(days) * DAY_MS : /^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN;
  if (at > Date.now()) return at;
  throw new InvalidArgumentError('expected a day to come, such as 2030-01-31 or 30d');
}

// ── Start ────────────────────────────────────────────────────────────────────────────────────────────────────────────

// What reads our output may have seen enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

try {
  await program.parseAsync();
} catch (error) {
  // Commander has said what was wrong, or printed the help that was asked for.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exit(reportError(error));
}
