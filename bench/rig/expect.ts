/** The body of an answer that must be what the benchmark builds on. */
export function expect(
  { status, body }: { readonly status: number; readonly body: unknown },
  wanted: number
): unknown {
  if (status !== wanted)
    throw new Error(`the platform answered ${status} instead of ${wanted}: ${JSON.stringify(body)}`)
  return body
}
