import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'

const all = ({ projectId, applicationId }: HappyFixture['ids']): string =>
  `/api/projects/${projectId ?? ''}/applications/${applicationId ?? ''}/domains`

/** A domain that was just added. */
async function domain({ admin, ids, unique }: HappyFixture): Promise<{ domainId: string; hostname: string }> {
  const hostname = `${unique('www')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '-')}.example.com`
  const { body } = await admin.post(all(ids), { hostname })
  return { domainId: body.id as string, hostname }
}

const feature = { feature_type: 'ip_allowlist', config: { ranges: ['10.0.0.0/8'] } }
const one = '/api/projects/{projectId}/applications/{applicationId}/domains/{domainId}'

export const happyCalls: HappyCalls = {
  'POST /api/projects/{projectId}/applications/{applicationId}/domains': ({ unique }) => ({
    body: {
      hostname: `${unique('new')
        .toLowerCase()
        .replace(/[^a-z0-9]/g, '-')}.example.com`
    }
  }),
  'POST /api/maintenance/proxy/reconcile': async ({ admin }) => ({
    // Nothing is reconciled while the test has turned the proxy off.
    expect: (await admin.get('/api/plugins/proxy-forwarder')).body.state === 'running' ? 200 : 409
  }),
  [`GET ${one}`]: async fixture => ({ ids: await domain(fixture) }),
  [`PUT ${one}`]: async fixture => {
    const { domainId, hostname } = await domain(fixture)
    return { ids: { domainId }, body: { hostname, path: '/shop' } }
  },
  [`DELETE ${one}`]: async fixture => ({ ids: await domain(fixture) }),
  [`POST ${one}/tls/recheck`]: async fixture => ({ ids: await domain(fixture) }),
  [`GET ${one}/features`]: async fixture => ({ ids: await domain(fixture) }),
  [`PUT ${one}/features`]: async fixture => ({ ids: await domain(fixture), body: feature }),
  [`DELETE ${one}/features/{featureId}`]: async fixture => {
    const { domainId } = await domain(fixture)
    const { body } = await fixture.admin.put(`${all(fixture.ids)}/${domainId}/features`, feature)
    return { ids: { domainId, featureId: body.id as string } }
  }
}
