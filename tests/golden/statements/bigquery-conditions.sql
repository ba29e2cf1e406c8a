SELECT
  `t2`.`item`,
  COALESCE(`t7`.`score`, 0) AS `score`
FROM (
  SELECT
    CAST(`item` AS STRING) AS `item`
  FROM UNNEST([
    STRUCT('tea' AS `item`),
    STRUCT('it\'s \\ 😀' AS `item`),
    STRUCT('rum ' AS `item`)
  ]) AS listed
) AS `t2`
LEFT OUTER JOIN (
  SELECT
    `t5`.`item`,
    COUNT(DISTINCT `t5`.`who`) AS `score`
  FROM (
    SELECT
      CAST(`t4`.`customer` AS BYTES) AS `who`,
      CAST(`t4`.`product` AS BYTES) AS `item`
    FROM (
      SELECT
        *
      FROM (
        SELECT
          *
        FROM `mart`.`sales` AS `t1`
        WHERE
          CAST(NULL AS INT64) + 719163 BETWEEN 739617 AND 739647
          OR UNIX_SECONDS(TIMESTAMP(`t1`.`at`, 'UTC')) + 62135683200 BETWEEN 63902908800 AND 63905587199
      ) AS `t3`
      WHERE
        CAST(TRIM(`t3`.`country`, ' ') AS BYTES) = CAST('DE' AS BYTES)
        AND `t3`.`day` >= DATE(2026, 1, 1)
        AND CAST(CAST(`t3`.`product` AS BYTES) AS STRING) LIKE 't%'
        AND `t3`.`amount` < CAST('2.5' AS FLOAT64)
        AND `t3`.`price` >= CAST('1.51' AS NUMERIC)
    ) AS `t4`
  ) AS `t5`
  GROUP BY
    1
) AS `t7`
  ON CAST(`t2`.`item` AS BYTES) = `t7`.`item`
