/**
 * Measures one part: `npm run measure -- NAME …`; without a name it lists the parts. Each prints one JSON line per
 * figure, or a table. `npm run bench` measures what grows with the number of memories, `npm run eval` the quality of
 * retrieval.
 */
const NUMBER = /^[1-9]\d{0,8}$/;

interface Measurement {
  readonly usage: string;
  readonly about: string;
  /** Pattern of each argument. */
  readonly accepts: RegExp;
  readonly least?: number;
  readonly most: number;
}

const MEASUREMENTS: Readonly<Record<string, Measurement>> = {
  service: {
    usage: '[MEMORIES] [CONNECTIONS]',
    about: 'the whole service: adds, queries, memory, against a floor in the same run',
    accepts: NUMBER,
    most: 2,
  },
  adds: {
    usage: '[MEMORIES] [CONNECTIONS]',
    about: 'durable adds over HTTP, against a bare server of one thread in the same run',
    accepts: NUMBER,
    most: 2,
  },
  turns: {
    usage: '[MEMORIES] [SECONDS]',
    about: 'CPU time of each turn of the event loop beside long questions, adds and health probes',
    accepts: NUMBER,
    most: 2,
  },
  queues: {
    usage: '[MEMORIES] [CONNECTIONS]',
    about: 'the same for an API, two workers and a Redis',
    accepts: NUMBER,
    most: 2,
  },
  documents: {
    usage: '[alone|stream|bulk|erase …] [PDF…]',
    about: 'pages a second against the bare parser, what a bulk ingest costs the API, deletes',
    accepts: /^[^-]/,
    most: Infinity,
  },
  'documents-parse': {
    usage: 'FILE…',
    about: 'the parser alone',
    accepts: /^[^-]/,
    least: 1,
    most: Infinity,
  },
  chunking: { usage: '[CHARACTERS]', about: 'cutting a long text into chunks', accepts: NUMBER, most: 1 },
  'mcp-cost': {
    usage: '[MEMORIES]',
    about: 'a recall over MCP in both eras, against the same query over HTTP',
    accepts: NUMBER,
    most: 1,
  },
  console: {
    usage: '[NODES] [ROWS]',
    about: 'the console in a headless Chromium: bytes, first paint, frames a second of a graph and of a long list',
    accepts: NUMBER,
    most: 2,
  },
  newcomer: {
    usage: '[install]',
    about: 'the time from a clone to the first explained answer in the console; with install it runs npm ci',
    accepts: /^install$/,
    most: 1,
  },
  'text-linear': { usage: '[--all]', about: 'text functions on hostile texts', accepts: /^--all$/, most: 1 },
  'vector-index': {
    usage: '[VECTORS] [hashed|clustered]',
    about: 'the vector index alone',
    accepts: /^(?:[1-9]\d{0,8}|hashed|clustered)$/,
    most: 2,
  },
  'vector-precision': {
    usage: '[MEMORIES] [DIMENSIONS] [auto|vec0]',
    about: 'what each precision of stored vectors takes and loses, against float32',
    accepts: /^(?:[1-9]\d{0,8}|auto|vec0)$/,
    most: 3,
  },
  consolidation: {
    usage: 'PATH [locomo|memdaily]',
    about: 'recall before and after memories are gathered, on the sets of a folder, and what gathering costs',
    accepts: /^[^-]/,
    least: 1,
    most: 2,
  },
  filters: {
    usage: '[LARGE]',
    about: 'filters by metadata and tags where they cost most, with LARGE memories of 15 kB of metadata',
    accepts: NUMBER,
    most: 1,
  },
  providers: {
    usage: '[MEMORIES]',
    about: 'what stands between a memory and its embedding provider',
    accepts: NUMBER,
    most: 1,
  },
  'provider-rate': {
    usage: '[REQUESTS_PER_MINUTE] [SECONDS]',
    about: "how much of a provider's limits two processes use together",
    accepts: NUMBER,
    most: 2,
  },
  poison: {
    usage: '[SECONDS] [PROVIDER_MS]',
    about: 'what one text that kills its worker costs all others',
    accepts: NUMBER,
    most: 2,
  },
  transfer: {
    usage: '[MEMORIES] [QUESTIONS] [MEGABYTES]',
    about: 'export and import of a whole store: rates, memory, equal answers of the copy',
    accepts: /^(?:0|[1-9]\d{0,8})$/,
    most: 3,
  },
  encryption: {
    usage: '[MEMORIES]',
    about: 'what each cipher costs adds and queries, against a store in clear',
    accepts: NUMBER,
    most: 1,
  },
  'metrics-cost': { usage: '[MEMORIES]', about: 'what metrics cost a query', accepts: NUMBER, most: 1 },
  federation: {
    usage: 'FOLDER [PARTS]',
    about: 'what a question to the parts of a store finds, against the whole, on public sets',
    accepts: /^(?:[2-9]|[^-\d].*)$/,
    least: 1,
    most: 2,
  },
  'recall-cost': { usage: '[MEMORIES]', about: 'what the recall log costs a query', accepts: NUMBER, most: 1 },
  occasional: {
    usage: '[MEMORIES]',
    about: 'a difference, replays, learning, an evaluation set, receipts, a delete and the proof of it',
    accepts: NUMBER,
    most: 1,
  },
  'postgres-trips': {
    usage: '[MEMORIES]',
    about: 'round trips and CPU time of adds, background work and queries of a tenant in PostgreSQL',
    accepts: NUMBER,
    most: 1,
  },
  'postgres-speed': {
    usage: '[MEMORIES]',
    about: 'adds, background work and queries in PostgreSQL, against bare inserts in the same run',
    accepts: NUMBER,
    most: 1,
  },
  'dispatch-backlog': {
    usage: '[TENANTS]',
    about: 'questions in PostgreSQL beside a dispatcher, while jobs of all tenants wait',
    accepts: NUMBER,
    most: 1,
  },
  'tracing-cost': { usage: '[MEMORIES]', about: 'what traces cost, on and off', accepts: NUMBER, most: 1 },
  standing: {
    usage: '[QUERIES] [MEMORIES] [names|natural]',
    about: 'what standing queries cost an add in the background',
    accepts: /^(?:[1-9]\d{0,8}|names|natural)$/,
    most: 3,
  },
  sectors: {
    usage: '[--show=SET]',
    about: 'how often the sector of a memory is found',
    accepts: /^--show=.+$/,
    most: Infinity,
  },
  'eval-embedder': {
    usage: 'FOLDER',
    about: 'the offline embedder on public sets',
    accepts: /^[^-]/,
    least: 1,
    most: 1,
  },
  'draw-scale': {
    usage: 'LINES.jsonl',
    about: 'draws the table and the plot of docs/internals/performance.md from what npm run bench printed',
    accepts: /^[^-]/,
    least: 1,
    most: 1,
  },
  'draw-demo': { usage: '', about: 'draws the picture of README.md from a run of cairn demo', accepts: /^$/, most: 0 },
  'draw-dashboards': {
    usage: '[SECONDS]',
    about: 'draws the pictures of docs/operations/monitoring.md, from a real Prometheus',
    accepts: NUMBER,
    most: 1,
  },
};

async function main([name = '', ...args]: readonly string[]): Promise<void> {
  const chosen = Object.hasOwn(MEASUREMENTS, name) ? MEASUREMENTS[name]! : undefined;
  const isHelp = [name, ...args].some((arg) => arg === '--help' || arg === '-h');
  const isGood =
    chosen !== undefined &&
    args.length >= (chosen.least ?? 0) &&
    args.length <= chosen.most &&
    args.every((arg) => chosen.accepts.test(arg));
  if (isGood && !isHelp) {
    // As if it had been called itself.
    process.argv.splice(2, 1);
    return void (await import(`./${name}.ts`));
  }
  process.exitCode = isHelp || name === '' ? 0 : 2;
  const print = process.exitCode === 0 ? console.log : console.error;
  if (chosen !== undefined) return print(`usage: npm run measure -- ${name} ${chosen.usage}\n${chosen.about}`);
  print('usage: npm run measure -- NAME …\n');
  for (const [known, { usage, about }] of Object.entries(MEASUREMENTS)) print(`  ${known} ${usage}\n      ${about}`);
}

await main(process.argv.slice(2));
