import { STATUS_CODES } from 'node:http';
import prettier from 'prettier';
import type {
  Content,
  OpenApiDocument,
  Operation,
  Parameter,
  Reference,
  ResponseObject,
} from '../src/api/openapi/document.ts';
import { describeFields, typeOf } from './fields.ts';
import { compactJson } from './json.ts';

/** Writes a description of the API as Markdown, in this project's format: a section a route, then the schemas that they share. */
export async function render(document: OpenApiDocument): Promise<string> {
  const text = [
    '# HTTP API reference',
    'Written by `npm run reference` from the schemas in `src/api/schemas` and the routes in `src/api/routes`: change those. ' +
      'A running server sends the same as OpenAPI 3.1 at `/openapi.json`, and shows it at `/docs`. The [guide](../api.md) ' +
      'tells the story by topic.',
    document.info.description,
    contents(document),
    ...document.tags.flatMap((tag) => [
      `## ${tag.name}`,
      tag.description,
      ...operationsOf(document, tag.name).map(({ method, path, operation }) =>
        describeOperation(document, `${method} ${path}`, operation),
      ),
    ]),
    '## Errors',
    'Errors of every route, unless it says otherwise. Each is a [Problem](#problem).',
    describeCommonErrors(document),
    '## Headers',
    describeHeaders(document),
    '## Schemas',
    'What routes have in common. A field that may be left out is marked as optional.',
    ...Object.entries(document.components.schemas).map(([name, schema]) =>
      [`### ${name}`, schema.description ?? '', describeFields(schema) || `${upperFirst(typeOf(schema))}.`]
        .filter(Boolean)
        .join('\n\n'),
    ),
  ].join('\n\n');
  return prettier.format(text, { parser: 'markdown', printWidth: 120 });
}

interface Named {
  readonly method: string;
  /** As Express writes it, with `:id` for a parameter. */
  readonly path: string;
  readonly operation: Operation;
}

function operationsOf({ paths }: OpenApiDocument, tag: string): Named[] {
  const all = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      operation,
    })),
  );
  return all.filter(({ operation }) => operation.tags.includes(tag));
}

/** The anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function contents(document: OpenApiDocument): string {
  const lines = document.tags.flatMap(({ name }) => [
    `- [${name}](#${anchorOf(name)})`,
    ...operationsOf(document, name).map(({ method, path, operation }) => {
      const heading = `${method} ${path}`;
      return `  - [\`${heading}\`](#${anchorOf(heading)}): ${lowerFirst(operation.summary)}`;
    }),
  ]);
  return [...lines, '- [Errors](#errors), [headers](#headers), [schemas](#schemas)'].join('\n');
}

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

// ── One route ────────────────────────────────────────────────────────────────────────────────────────────────────────

function describeOperation(document: OpenApiDocument, name: string, operation: Operation): string {
  const { summary, description, requestBody } = operation;
  return [
    `### \`${name}\``,
    `${summary}. Access: \`${accessOf(operation)}\`.`,
    description,
    describeParameters(document, operation),
    requestBody && describeBody(requestBody.content, requestBody.required),
    describeReplies(operation),
    describeErrors(document, operation),
    describeExample(name, operation),
  ]
    .filter((part) => part !== undefined && part !== '')
    .join('\n\n');
}

function accessOf({ security }: Operation): string {
  const [first] = security;
  return first === undefined ? 'anyone' : (first['bearer']![0] ?? 'key');
}

function describeParameters(document: OpenApiDocument, { parameters = [] }: Operation): string {
  const lines = parameters.map((parameter) => {
    if ('$ref' in parameter) return undefined;
    const { name, in: place, description, schema } = parameter;
    const isDefault = schema.default === undefined ? '' : `, ${JSON.stringify(schema.default)} by default`;
    return `- \`${name}\` (${place}, ${typeOf(schema)}${isDefault}): ${description}`;
  });
  const headers = parameters
    .filter((parameter): parameter is Reference => '$ref' in parameter)
    .map(({ $ref }) => document.components.parameters[nameOf($ref)]!.name)
    .filter((name) => !EVERYWHERE.includes(name))
    .map((name) => `- \`${name}\` (header): see [headers](#headers)`);
  const all = [...lines.filter((line) => line !== undefined), ...headers];
  return all.length === 0 ? '' : `Parameters:\n\n${all.join('\n')}`;
}

/** Headers of every request and reply, which are told once. */
const EVERYWHERE = ['x-request-id', 'traceparent'];

const nameOf = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1);

function describeBody(content: Content, isRequired: boolean): string {
  const parts = Object.entries(content).map(([type, { schema }]) => {
    const what = type === 'application/x-ndjson' ? 'a line each' : '';
    if (schema.$ref !== undefined) return `- \`${type}\`: ${typeOf(schema)}${what && `, ${what}`}`;
    const fields = describeFields(schema, '  ');
    return `- \`${type}\`${fields === '' ? `: ${typeOf(schema)}` : `\n${fields}`}`;
  });
  return `Body${isRequired ? '' : ', which may be left out'}:\n\n${parts.join('\n')}`;
}

function describeReplies({ responses }: Operation): string {
  const lines = Object.entries(responses).flatMap(([status, response]) => {
    if ('$ref' in response || isProblem(response)) return [];
    const headers = Object.keys(response.headers ?? {}).filter((name) => !EVERYWHERE.includes(name));
    const named = headers.length === 0 ? '' : ` With ${headers.map((name) => `\`${name}\``).join(', ')}.`;
    const contents = Object.entries(response.content ?? {}).map(([type, { schema }]) => {
      const isJson = type === 'application/json';
      const fields = isJson ? describeFields(schema, '    ') : '';
      const word = isJson && fields !== '' ? '' : typeOf(schema);
      return `  - \`${type}\`${word === '' ? '' : `: ${word}`}${fields === '' ? '' : `\n${fields}`}`;
    });
    return [`- ${status}: ${response.description}${named}`, ...contents];
  });
  return `Replies:\n\n${lines.join('\n')}`;
}

function isProblem({ content = {} }: ResponseObject): boolean {
  return 'application/problem+json' in content;
}

function describeErrors({ components }: OpenApiDocument, { responses }: Operation): string {
  const entries = Object.entries(responses);
  const own = entries.flatMap(([status, response]) => {
    if ('$ref' in response || !isProblem(response)) return [];
    const { code } = response.content!['application/problem+json']!.example as { code: string };
    return [`- ${status} \`${code}\`: ${response.description}`];
  });
  const common = entries.flatMap(([status, response]) => {
    return '$ref' in response && nameOf(response.$ref) in components.responses
      ? [`${status} \`${nameOf(response.$ref)}\``]
      : [];
  });
  const rest = `- ${common.join(', ')}: see [errors](#errors)`;
  return `Errors:\n\n${[...own, rest].join('\n')}`;
}

/** A request and what it is answered; left out where a reply is no JSON. */
function describeExample(name: string, { parameters = [], requestBody, responses }: Operation): string {
  const reply = responses['202'] ?? responses['200'];
  if (reply === undefined || '$ref' in reply || reply.content?.['application/json'] === undefined) return '';
  const status = '202' in responses ? '202' : '200';
  const path = parameters
    .filter((parameter): parameter is Parameter => 'in' in parameter && parameter.in === 'path')
    .reduce((text, { name, example }) => text.replace(`:${name}`, String(example)), name);
  const body = requestBody?.content['application/json']?.example;
  return [
    '```http',
    path,
    ...(body === undefined ? [] : [compactJson(body)]),
    '',
    `${status} ${STATUS_CODES[status]}`,
    '',
    compactJson(reply.content['application/json'].example),
    '```',
  ].join('\n');
}

// ── What routes have in common ───────────────────────────────────────────────────────────────────────────────────────

function describeCommonErrors({ components }: OpenApiDocument): string {
  const lines = Object.entries(components.responses).map(([code, { description, content }]) => {
    const { status } = content!['application/problem+json']!.example as { status: number };
    return `- ${status} \`${code}\`: ${description}`;
  });
  return lines.join('\n');
}

function describeHeaders({ components }: OpenApiDocument): string {
  const sent = Object.values(components.parameters).map(({ name, description }) => `- \`${name}\`: ${description}`);
  const answered = Object.entries(components.headers).map(
    ([name, { description, example }]) => `- \`${name}\`: ${description} Such as \`${String(example)}\`.`,
  );
  return ['Of requests:', sent.join('\n'), 'Of replies:', answered.join('\n')].join('\n\n');
}
