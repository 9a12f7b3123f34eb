import type { NotificationDeclarer } from 'busbar/sdk'
import { domainTlsChanged } from './api.js'

const group = 'Domains'
const link = '/certificates'

export function notifications(notification: NotificationDeclarer): void {
  notification(domainTlsChanged, {
    type: 'tls.failed',
    label: 'TLS failed',
    description: 'A domain that is to be served over TLS is not.',
    group,
    severity: 'error',
    when: { status: 'failed' },
    audience: 'admins',
    title: '{hostname} is not served over TLS',
    body: '{reason}',
    link
  })
  notification(domainTlsChanged, {
    type: 'tls.expiring',
    label: 'TLS certificate expires soon',
    description: 'The certificate that a domain is served with ends within 14 days.',
    group,
    severity: 'warn',
    when: { status: 'expiring' },
    audience: 'admins',
    title: 'The certificate of {hostname} expires soon',
    body: 'It ends at {notAfter}.',
    link
  })
  notification(domainTlsChanged, {
    type: 'tls.expired',
    label: 'TLS certificate expired',
    description: 'The certificate that a domain is served with has ended: browsers refuse it.',
    group,
    severity: 'error',
    when: { status: 'expired' },
    audience: 'admins',
    title: 'The certificate of {hostname} has expired',
    body: 'It ended at {notAfter}.',
    link
  })
}
