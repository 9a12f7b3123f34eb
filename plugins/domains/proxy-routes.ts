import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { Domains } from './domains.js'
import { problems } from './problems.js'
import { dashboardTls, reconcilerStatus, serverIp } from './schemas.js'

const group = 'Maintenance (Admin)'
const admins = { role: 'admin', project: 'none' } as const

export function proxyRoutes(route: RouteDeclarer<Domains>): void {
  route({
    method: 'GET',
    url: '/api/maintenance/proxy',
    group,
    operationId: 'GetProxyReconcilerStatus',
    summary: 'Get Proxy Status',
    description:
      'How often the proxy was given what it is to serve, and what the newest time has changed. Of a proxy outside of the platform: what the comparison with what it serves has found.',
    access: allow.token('read', admins),
    schema: { response: { 200: reconcilerStatus } },
    handler: async (_request, { proxy }) => await proxy.status()
  })
  route({
    method: 'POST',
    url: '/api/maintenance/proxy/reconcile',
    group,
    operationId: 'ReconcileProxy',
    summary: 'Reconcile Proxy',
    description:
      'Reads all domains and where requests go anew, gives them to the proxy, and has that compare what it serves. What went wrong is in `last_error`.',
    problems: [problems.noDriver],
    access: allow.token('write', admins),
    schema: { response: { 200: reconcilerStatus } },
    idempotent: true,
    audit: { action: 'reconcile_proxy', resource: 'proxy' },
    handler: async (_request, { proxy }) => await proxy.reconcile()
  })
  route({
    method: 'GET',
    url: '/api/maintenance/server-ip',
    group,
    operationId: 'GetServerIP',
    summary: 'Get Server IP',
    description:
      'The address that domains have to lead to. It is what BUSBAR_PUBLIC_IP says, or else the address from which the machine reaches the internet, where that is a public one.',
    access: allow.token('read', admins),
    schema: { response: { 200: serverIp } },
    handler: async (_request, { proxy }) => await proxy.serverAddress()
  })
  route({
    method: 'GET',
    url: '/api/server/dashboard-tls',
    group,
    operationId: 'GetDashboardTLS',
    summary: 'Get LTS Status',
    description: 'How the platform itself is served by its own hostname, looked at when somebody asks.',
    access: allow.token('read', admins),
    schema: { response: { 200: dashboardTls } },
    handler: async (_request, { proxy }) => await proxy.dashboardTls()
  })
}
