import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeApi, describeApiInSteps } from '../../src/api/openapi/describe.ts';
import type { Operation, Parameter } from '../../src/api/openapi/document.ts';
import { errorsOf } from '../../src/api/openapi/errors.ts';
import { exampleOf } from '../../src/api/openapi/example.ts';
import type { JsonSchema } from '../../src/api/openapi/json-schemas.ts';
import { ROUTE_GROUPS, ROUTES } from '../../src/api/routes.ts';
import { descriptionRoutes } from '../../src/api/routes/description.ts';
import { HTTP_STATUS } from '../../src/api/schemas/problem.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const LINTER = path.resolve(import.meta.dirname, '../../node_modules/@redocly/cli/bin/cli.js');
const description = describeApi(ROUTE_GROUPS, '0.0.0-test');
const operationOf = (method: string, route: string) =>
  description.paths[route.replaceAll(/:(\w+)/g, '{$1}')]?.[method] as Operation;
const routes = ROUTES.map((route) => ({ ...route, label: `${route.method.toUpperCase()} ${route.path}` }));
const componentOf = <Part>(part: Part | { readonly $ref: string }): Part => {
  if (typeof part !== 'object' || part === null || !('$ref' in part)) return part;
  const [kind, name] = part.$ref.split('/').slice(-2);
  return (description.components as unknown as Record<string, Record<string, Part>>)[kind!]![name!]!;
};

test("Redocly's recommended rules find nothing", async () => {
  const file = path.join(tempFolder(), 'openapi.json');
  fs.writeFileSync(file, JSON.stringify(description));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    // A sign-in at an identity provider goes by redirects alone; the next test looks after that rule.
    [LINTER, 'lint', file, '--extends=recommended', '--skip-rule=operation-2xx-response', '--format=json'],
    { env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
  );
  const { totals, problems } = JSON.parse(stdout) as { totals: object; problems: { message: string }[] };
  expect(problems.map(({ message }) => message)).toEqual([]);
  expect(totals).toMatchObject({ errors: 0, warnings: 0 });
});

test('only the sign-in at an identity provider succeeds by a redirect', () => {
  const redirecting = ROUTES.filter(({ replies }) => !Object.keys(replies).some((status) => status.startsWith('2')));
  expect(redirecting.map(({ name }) => name)).toEqual(['beginProviderSignIn', 'endProviderSignIn']);
});

test('every operation has a name of its own', () => {
  const names = ROUTES.map(({ name }) => name);
  expect([...new Set(names)]).toEqual(names);
  expect(names.filter((name) => !/^[a-z][A-Za-z]+$/.test(name))).toEqual([]);
});

describe.each(routes)('$label', (route) => {
  const operation = operationOf(route.method, route.path);

  test('is described with its role, its query parameters and its errors', () => {
    expect(operation.operationId).toBe(route.name);
    const roles = operation.security.map((scheme) => Object.values(scheme)[0]);
    const role = [route.access];
    expect(roles).toEqual(route.access === 'anyone' ? [] : [role, role, role]);
    const statuses = [...errorsOf(route).keys()].map((code) => HTTP_STATUS[code]);
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(statuses.map(String)));
    const inPath = (operation.parameters as Parameter[]).filter((parameter) => parameter.in === 'path');
    expect(inPath.map(({ name }) => name)).toEqual([...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name));
  });

  test('has an example of every parameter, body, reply and header', () => {
    const parameters = (operation.parameters ?? []).map((parameter) => componentOf<Parameter>(parameter));
    const without = parameters.filter(({ example, schema }) => example === undefined && schema.examples === undefined);
    expect(without).toEqual([]);
    const responses = Object.values(operation.responses).map((response) => componentOf(response));
    const contents = [operation.requestBody, ...responses].flatMap((part) => Object.values(part?.content ?? {}));
    expect(contents.filter(({ example }) => example === undefined)).toEqual([]);
    const headers = responses.flatMap((response) => Object.values(response.headers ?? {}));
    expect(headers.length).toBeGreaterThan(0);
    expect(headers.filter((header) => componentOf<{ example?: unknown }>(header).example === undefined)).toEqual([]);
  });

  test('says what every field and parameter is for', () => {
    const parameters = (operation.parameters ?? []).map((parameter) => componentOf<Parameter>(parameter));
    expect(parameters.filter((parameter) => !parameter.description)).toEqual([]);
    const bodies = Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => componentOf(schema));
    const fields = bodies.flatMap(({ properties = {} }) => Object.entries(properties as Record<string, JsonSchema>));
    expect(fields.filter(([, field]) => !field.description).map(([name]) => name)).toEqual([]);
  });

  test('its examples are what its schemas describe, field for field', () => {
    const { body, replies } = route;
    if (body !== undefined) expect(body.json.safeParse(body.example).error).toBeUndefined();
    for (const [status, { json }] of Object.entries(replies)) {
      const { content } = componentOf(operation.responses[status]!);
      if (json !== undefined) expect(json.safeParse(content!['application/json']!.example).error).toBeUndefined();
    }
  });
});

test('an example is made of the examples of its parts, without optional fields', () => {
  const components = { Name: { type: 'string' as const, examples: ['ana'] } };
  const schema = {
    type: 'object' as const,
    required: ['name', 'sizes', 'kind', 'at'],
    properties: {
      name: { $ref: '#/components/schemas/Name' },
      sizes: { type: 'array' as const, items: { type: 'integer' as const, minimum: 3 } },
      kind: { enum: ['a', 'b'] },
      at: { anyOf: [{ const: 7 }, { type: 'null' as const }] },
      left_out: { type: 'string' as const },
    },
  };
  expect(exampleOf(schema, components)).toEqual({ name: 'ana', sizes: [3], kind: 'a', at: 7 });
});

describe('served', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
  afterAll(() => api.stop());

  test('/openapi.json is the description of all routes', async () => {
    const reply = await api.request('GET', '/openapi.json', { key: null });
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(reply.body).toEqual(JSON.parse(JSON.stringify(description)));
  });

  test('/openapi.json is encoded once for all replies', async () => {
    const ends: unknown[] = [];
    const [described] = descriptionRoutes(() => ROUTE_GROUPS);
    const response = { setHeader() {}, end: (bytes: unknown) => void ends.push(bytes) };
    const call = { api: { version: '0.0.0-test' }, request: { params: {}, query: {} }, response };
    for (let no = 0; no < 2; no += 1) await described!.handle(call as never);
    expect(ends[0]).toBeInstanceOf(Buffer);
    expect(ends[1]).toBe(ends[0]);
  });

  test('/docs asks only this server for anything, and gets it', async () => {
    const page = await api.request('GET', '/docs', { key: null });
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = page.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    const named = [...page.text.matchAll(/(?:src|href|data-description)="(?!data:)([^"]+)"/g)].map(([, name]) => name!);
    expect(new Set(named)).toEqual(
      new Set(['./docs/swagger-ui.css', './docs/swagger-ui-bundle.js', './docs/start.js', './openapi.json']),
    );
    for (const name of named) {
      const { pathname } = new URL(name, `${api.url}/docs`);
      const file = await api.request('GET', pathname, { key: null });
      const type = { css: 'text/css', js: 'text/javascript', json: 'application/json' }[/\w+$/.exec(name)![0]];
      expect([name, file.status, file.headers.get('content-type')]).toEqual([name, 200, `${type}; charset=utf-8`]);
    }
  });

  test('the page asks no validator of others, and keeps no key', async () => {
    const { text } = await api.request('GET', '/docs/start.js', { key: null });
    expect(text).toContain('validatorUrl: null');
    expect(text).toContain('persistAuthorization: false');
  });

  test.each(['viewer.ts', '..%2fviewer.ts', 'toString', 'swagger-ui-bundle.js.map', '%2e%2e%2f%2e%2e%2froute.ts'])(
    'no other file is served: %s',
    async (name) => expect((await api.request('GET', `/docs/${name}`, { key: null })).status).toBe(404),
  );
});

test('the description is made in steps of one schema or one group of routes, so that others have turns between them', () => {
  const steps = describeApiInSteps(ROUTE_GROUPS, '0.0.0-test');
  let made = 0;
  let step = steps.next();
  for (; !step.done; step = steps.next()) made += 1;
  expect(step.value).toEqual(description);
  expect(made).toBeGreaterThan(ROUTES.length);
});
