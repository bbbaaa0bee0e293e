-- The W3C trace context (https://www.w3.org/TR/trace-context/) of the request that a job goes back to; NULL for one that is not traced.
ALTER TABLE jobs ADD COLUMN trace_context TEXT;
