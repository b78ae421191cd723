// Alerts, recording rules and a dashboard, in the form of the monitoring mixins.
(import 'config.libsonnet')
+ (import 'rules.libsonnet')
+ (import 'alerts.libsonnet')
+ (import 'dashboard.libsonnet')
