import { describe, expect, test } from 'vitest';
import { problemOfReply, routeOf, type SentReply } from '../support/check-reply.ts';

const JOB = {
  id: '01a1fe30-e25d-71cf-b719-06918c2a54a4',
  kind: 'memory',
  memory_id: null,
  document_id: null,
  step: 'done',
  state: 'done',
  priority: 0,
  attempts: 0,
  crashes: 0,
  run_at: 1,
  error: null,
  created_at: 1,
  updated_at: 1,
  finished_at: 1,
  timeline: [],
};
const PROBLEM = {
  type: 'about:blank',
  title: 'Not Found',
  status: 404,
  detail: '',
  code: 'not_found',
  request_id: 'x',
};
const problemOf = (body: unknown, reply: Partial<SentReply> = {}) =>
  problemOfReply({
    method: 'GET',
    target: '/jobs/1?a=b',
    status: 200,
    contentType: 'application/json; charset=utf-8',
    text: typeof body === 'string' ? body : JSON.stringify(body),
    ...reply,
  });
const error = { contentType: 'application/problem+json', status: 404 };
const lines = { method: 'POST', target: '/memory/add/batch', status: 202, contentType: 'application/x-ndjson' };
const events = { target: '/jobs/1/events', contentType: 'text/event-stream; charset=utf-8' };

describe('a reply as it is described passes', () => {
  test.each<[string, unknown, Partial<SentReply>]>([
    ['JSON', JOB, {}],
    ['a problem', PROBLEM, error],
    ['a problem of an unknown path', PROBLEM, { ...error, target: '/nowhere' }],
    ['NDJSON', '{"accepted":0,"rejected":0,"token":null}\n', lines],
    ['events', `event: state\ndata: ${JSON.stringify(JOB)}\n\n: ping\n\nevent: gone\ndata: {}\n\n`, events],
    ['no body where none is sent', '', { method: 'HEAD' }],
  ])('%s', (_name, body, reply) => expect(problemOf(body, reply)).toBeUndefined());
});

describe('a reply that differs is told', () => {
  test.each<[string, unknown, Partial<SentReply>, string]>([
    ['a field that is not described', { ...JOB, secret: 1 }, {}, 'secret'],
    ['a field that is missing', { ...JOB, state: undefined }, {}, 'state'],
    ['a value of another type', { ...JOB, run_at: '1' }, {}, 'run_at'],
    ['a status', JOB, { status: 201 }, 'the status is not described'],
    ['a media type', JOB, { contentType: 'text/html' }, 'the media type text/html is not described'],
    [
      'an error that the route does not name',
      { ...PROBLEM, status: 409, code: 'conflict' },
      { ...error, status: 409 },
      'conflict',
    ],
    ['an error with another status', { ...PROBLEM, status: 400 }, error, 'its status is 400'],
    ['JSON where no route is', JOB, { target: '/nowhere' }, 'no route is described'],
    ['a line', '{"accepted":0}\n', lines, 'Invalid input'],
    ['an event', 'event: other\ndata: {}\n\n', events, 'the event other is not described'],
    ['data of an event', 'event: state\ndata: {}\n\n', events, 'kind'],
  ])('%s', (_name, body, reply, told) => expect(problemOf(body, reply)).toContain(told));
});

test('a path belongs to the first route that it fits', () => {
  expect(routeOf('GET', '/memory/all?l=1')?.name).toBe('listMemories');
  expect(routeOf('GET', '/memory/x')?.name).toBe('getMemory');
  expect(routeOf('DELETE', '/memory/link')?.name).toBe('unlinkMemories');
  expect(routeOf('GET', '/openapixjson')).toBeUndefined();
});
